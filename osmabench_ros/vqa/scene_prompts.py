"""Scenes by language models, as in OSMa-Bench++: prompts, specifications and questions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.files import atomic_directory, write_json, write_text
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError, LanguageModelError
from osmabench_ros.language.client import ModelClient
from osmabench_ros.language.embedding import Embedder
from osmabench_ros.language.prompts import load_prompt
from osmabench_ros.scenes.apartment.pieces import list_specifiable_classes
from osmabench_ros.scenes.specification import (
    RoomSpecification,
    SceneSpecification,
    SpecifiedRelation,
)
from osmabench_ros.vqa.exact.prompt_ground_truth import SUITE
from osmabench_ros.vqa.questions import PromptCategory, Question, make_question
from osmabench_ros.vqa.saved_answers import answer_type_of
from osmabench_ros.vqa.schemas import WrittenQuestions, make_request, parse

PROMPTS, REJECTED = 'prompts.json', 'rejected.json'
# Cosine of two prompts from which the later one is left out.
NEAR_DUPLICATE = 0.9

BATCH = 12


class Regime(Strict):
    """What prompts may and must say; word lists and limits as OSMa-Bench++ has them."""

    rooms: tuple[str, ...]
    arrangements: tuple[str, ...]
    rules: tuple[str, ...]
    spatial: tuple[str, ...]
    vague: tuple[str, ...]
    objects: tuple[str, ...]
    forbidden: tuple[str, ...]
    risky: tuple[str, ...]
    strong: tuple[str, ...]
    words: tuple[int, int]
    counts: int = Field(ge=0)
    cues: int = Field(ge=0)
    total: tuple[int, int]
    sentences: tuple[int, int]
    wanted: int = Field(ge=1)
    raw: int = Field(ge=1)


def regimes() -> dict[str, Regime]:
    """Return the regimes by name: 'furniture', and 'manipuland' with one small object."""
    return load_prompt('write_scene_prompts').read_setting(dict[str, Regime], 'regimes')


def faults_of_prompt(text: str, regime: Regime, *, strict: bool = False) -> list[str]:
    """Return why a prompt is rejected, in the words of OSMa-Bench++; none if it is kept.

    As there, words are looked for within words: "bookshelf" is a forbidden "book", and a stool
    a "tool". With `strict` only whole words count.
    """
    lower = text.lower()

    def hits(phrases: Sequence[str]) -> list[str]:
        if strict:
            return [item for item in phrases if re.search(rf'\b{re.escape(item)}\b', lower)]
        return [item for item in phrases if item in lower]

    numbers = [int(found) for found in re.findall(r'\b\d+\b', text)]
    words = len(re.findall(r"\b[\w'-]+\b", text))
    sentences = sum(bool(part.strip()) for part in re.split(r'[.!?]+', text))
    vague = hits(regime.vague)
    checks = {
        'too_short': words < regime.words[0],
        'too_long': words > regime.words[1],
        'vague_words': bool(vague),
        'too_few_explicit_counts': len(numbers) < regime.counts,
        'too_few_spatial_cues': len(hits(regime.spatial)) < regime.cues,
        'too_few_total_objects': sum(numbers) < regime.total[0],
        'too_many_total_objects': sum(numbers) > regime.total[1],
        'too_few_sentences': sentences < regime.sentences[0],
        'too_many_sentences': sentences > regime.sentences[1],
        'contains_ids': '#' in text,
        'contains_structural_markup': any(sign in text for sign in '{}[]'),
        'contains_forbidden_objects': bool(hits(regime.forbidden)),
        'contains_risky_language': bool(hits(regime.risky)),
        'too_simple': not hits(regime.strong),
        'no_required_object_hits': not hits(regime.objects),
    }
    return [name for name, found in checks.items() if found]


def without_near_duplicates(features: NDArray[np.floating]) -> list[int]:
    """Return the rows of unit features (N, D) that are not too close to a kept one before them."""
    alike = features @ features.T
    kept: list[int] = []
    for row in range(len(features)):
        if not any(alike[row, other] >= NEAR_DUPLICATE for other in kept):
            kept.append(row)
    return kept


def farthest_first(features: NDArray[np.floating], count: int) -> list[int]:
    """Return rows of unit features (N, D): the first, then always the farthest from all taken."""
    taken: list[int] = []
    nearest = np.full(len(features), np.inf)
    while len(taken) < min(count, len(features)):
        taken.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, 1.0 - features @ features[taken[-1]])
        nearest[taken] = -np.inf
    return taken


@dataclass(frozen=True)
class PromptPool:
    """Prompts that were kept, and those rejected with the reasons."""

    kept: tuple[str, ...]
    rejected: tuple[tuple[str, tuple[str, ...]], ...]


class _WrittenPrompt(BaseModel):
    prompt: str = Field(min_length=1, max_length=4000)


class _WrittenPrompts(BaseModel):
    prompts: list[_WrittenPrompt]


def write_prompts(
    client: ModelClient,
    name: str,
    embedder: Embedder,
    *,
    wanted: int | None = None,
    raw: int | None = None,
    attempts: int = 80,
    seed: int = 42,
    strict: bool = False,
    progress: Progress = silent,
) -> PromptPool:
    """Return prompts of a regime: written in batches, filtered, de-duplicated, spread.

    Raises LanguageModelError if no attempt gave a prompt that passes, or the server failed.
    """
    regime = regimes()[name]
    prompt = load_prompt('write_scene_prompts')
    rng = np.random.default_rng(seed)
    pool: dict[str, str] = {}
    rejected: list[tuple[str, tuple[str, ...]]] = []
    raw = raw or regime.raw
    for attempt in range(attempts):
        if len(pool) >= raw:
            break
        room, arrangement = (str(rng.choice(of)) for of in (regime.rooms, regime.arrangements))
        request = make_request(
            prompt, _WrittenPrompts, seed=seed + 1000 * attempt,
            **regime.model_dump(), count=BATCH, room=room, arrangement=arrangement,
        )  # fmt: skip
        for item in client.ask(request, partial(parse, _WrittenPrompts)).prompts:
            said = item.prompt.strip()
            faults = faults_of_prompt(said, regime, strict=strict)
            if faults:
                rejected.append((said, tuple(faults)))
            else:
                pool.setdefault(' '.join(said.lower().split()), said)
        progress(f'prompts: {len(pool)} of {raw}', min(1.0, len(pool) / raw))
    if not pool:
        raise LanguageModelError(f'none of {len(rejected)} prompts by {client.name} passes')
    texts = list(pool.values())[:raw]
    features = embedder.embed(texts)
    kept = without_near_duplicates(features)
    spread = farthest_first(features[kept], wanted or regime.wanted)
    return PromptPool(tuple(texts[kept[row]] for row in spread), tuple(rejected))


def write_prompt_files(
    client: ModelClient, name: str, embedder: Embedder, out: Path, **options: Any
) -> PromptPool:
    """Write the prompts of `write_prompts` by names of scenes, and those rejected, to a folder."""
    with atomic_directory(out) as draft:
        pool = write_prompts(client, name, embedder, **options)
        named = {f'{name}_{i:04d}': text for i, text in enumerate(pool.kept, start=1)}
        write_json(draft / PROMPTS, named)
        rejected = [{'prompt': text, 'reasons': list(why)} for text, why in pool.rejected]
        write_json(draft / REJECTED, rejected)
    return pool


class _Rooms(Strict):
    rooms: tuple[RoomSpecification, ...] = Field(min_length=1)


def specification_of(
    client: ModelClient, text: str, name: str, classes: Sequence[str]
) -> SceneSpecification:
    """Return the specification that a prompt asks for, of classes that the builder knows.

    A reply outside the schema, which names missing objects, or has two objects in one place, is
    asked for again; then LanguageModelError.
    """
    request = make_request(
        load_prompt('specify_scene'),
        _Rooms,
        text=text,
        classes=list(classes),
        relations=[item.value for item in SpecifiedRelation],
        alone=[item.value for item in SpecifiedRelation if not item.objects],
    )

    def read(reply: str) -> SceneSpecification:
        return SceneSpecification(name=name, prompt=text, rooms=parse(_Rooms, reply).rooms)

    return client.ask(request, read)


def write_specifications(client: ModelClient, prompts: Path, out: Path) -> int:
    """Write a specification for each prompt of a file, NAME.yaml; return how many."""
    texts = validated(dict[str, str], read_json(prompts, ConfigError), str(prompts))
    with atomic_directory(out) as draft:
        for name, text in texts.items():
            made = specification_of(client, text, name, sorted(list_specifiable_classes()))
            data = made.model_dump(mode='json', by_alias=True, exclude_defaults=True)
            document = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
            write_text(draft / f'{name}.yaml', document)
    return len(texts)


def promptgt_by_model(client: ModelClient, text: str, scene: str) -> list[Question]:
    """Return PromptGT questions that a model writes from a prompt, cleaned as in OSMa-Bench++.

    Other categories are dropped, answers to counts reduced to their digits, Yes and No spelt so,
    and repeated questions asked once.
    """
    prompt = load_prompt('write_promptgt')
    request = make_request(prompt, WrittenQuestions, text=text)
    found: dict[str, Question] = {}
    for item in client.ask(request, partial(parse, WrittenQuestions)).questions:
        if item.category not in {category.value for category in PromptCategory}:
            continue
        asked = item.question.strip()
        answer = _clean_reply(item.answer, item.category)
        question = make_question(
            SUITE, scene, asked, answer_type_of(answer), answer, category=item.category,
            provenance={'model': client.name, 'prompts': prompt.identity},
        )  # fmt: skip
        found.setdefault(asked.lower(), question)
    return list(found.values())


def _clean_reply(answer: str, category: str) -> str:
    answer = answer.strip()
    digits = re.sub(r'\D', '', answer)
    if category == PromptCategory.MEASUREMENT.value and digits:
        return digits
    return {'true': 'Yes', 'yes': 'Yes', 'false': 'No', 'no': 'No'}.get(answer.lower(), answer)
