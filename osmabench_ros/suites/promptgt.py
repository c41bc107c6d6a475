"""PromptGT of OSMa-Bench++: how well a scene meets its specification, and a map the scene."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.files import atomic_directory, check_folder, write_json
from osmabench_ros.base.strict import FilePath
from osmabench_ros.errors import ConfigError, QuestionError
from osmabench_ros.language.client import ModelClient
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.scenes.specification import (
    FactKind,
    SceneSpecification,
    facts,
    read_specification,
)
from osmabench_ros.suites.question_suite import (
    AskedQuestions,
    ExactQuestionsSuite,
    QuestionModelOptions,
)
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.vqa.answering.baselines import ground_truth_map
from osmabench_ros.vqa.answering.rule import RuleAnswerer
from osmabench_ros.vqa.evaluation import answer_all, judge_all
from osmabench_ros.vqa.exact.prompt_ground_truth import PROMPTGT, SUITE, promptgt_questions
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.published import Published, PublishedRow, Scores, read_document
from osmabench_ros.vqa.questions import PromptCategory, Question, make_question
from osmabench_ros.vqa.saved_answers import RIGHT, VERDICT_KEYS, answer_type_of
from osmabench_ros.vqa.scene_prompts import promptgt_by_model
from osmabench_ros.vqa.scores import records

if TYPE_CHECKING:
    import pandas as pd

FRAME = 'prompt_ground_truth'
MEASUREMENTS, RELATIONS = 'Measurements', 'Relations'
STANDARD, PROMPT = 'Standard VQA', 'PromptGT'
# Block of each category of PromptGT.
BLOCK_OF: Mapping[str, str] = {
    PromptCategory.MEASUREMENT.value: MEASUREMENTS,
    PromptCategory.RELATIONS.value: RELATIONS,
    PromptCategory.EXISTENCE.value: RELATIONS,
}

_STANDARD_OF = {
    'Measurement': MEASUREMENTS,
    'Object Relations - Spatial': RELATIONS,
    'Object Relations - Functional': RELATIONS,
}
_LABELS = {
    **{name: name for name in ('baseline', 'camera', 'dynamic_lights', 'no_lights')},
    'camera_lights': 'camera',
    'nominal': 'no_lights',
}
_ANSWERED = '*answered*.json'


class _Asked(PublishedRow):
    question: str = Field(min_length=1)
    answer: str = Field(min_length=1)
    category: str


class _Frame(PublishedRow):
    qa: tuple[_Asked, ...]


class _QuestionFile(PublishedRow):
    scene_name: str
    parameters: tuple[_Frame, ...]


def read_questions(path: Path) -> list[Question]:
    """Read SCENE_questions.json of OSMa-Bench++; QuestionError names file and key."""
    data = read_document(_QuestionFile, path)
    asked = {item.question: item for frame in data.parameters for item in frame.qa}
    return [
        make_question(
            SUITE,
            data.scene_name,
            item.question,
            answer_type_of(item.answer),
            item.answer,
            category=item.category,
        )
        for item in asked.values()
    ]


def write_questions(path: Path, scene: str, questions: Sequence[Question]) -> None:
    """Write questions as OSMa-Bench++ does: Yes and No with capitals, counts as digits."""
    said = [
        {
            'question': item.text,
            'answer': str(item.answer).capitalize() if item.answer in ('yes', 'no')
            else str(item.answer),
            'category': item.category,
        }
        for item in questions
    ]  # fmt: skip
    write_json(path, {'scene_name': scene, 'parameters': [{'frame': FRAME, 'qa': said}]})


def write_question_files(
    specifications: Path, out: Path, client: ModelClient | None, seed: int
) -> list[int]:
    """Write the questions of each specification, exact ones or by a model; return the counts."""
    check_folder(out)
    files = sorted(specifications.glob('*.yaml'))
    if not files:
        raise ConfigError(f'{specifications} holds no *.yaml; make them with scene specify')
    counts = []
    with atomic_directory(out) as draft:
        for wanted in map(read_specification, files):
            name = wanted.name
            if client is None:
                made = promptgt_questions(wanted, scene=name, seed=seed)
            else:
                made = promptgt_by_model(client, wanted.prompt, name)
            write_questions(draft / f'{name}_questions.json', name, made)
            counts.append(len(made))
    return counts


def read_verdicts(root: Path, source: str) -> list[dict[str, str]]:
    """Return place, block and status of each answer below a folder that is in a block.

    Files are ``*answered*.json`` at any depth, and the names of folders give their condition;
    without any it is a QuestionError. `source`, STANDARD or PROMPT, decides the categories that
    count. As in the code of OSMa-Bench++ the first verdict key that an answer has counts, even an
    empty one; an answer without any is "unknown" and stays in the denominator; other categories,
    and files that are not a list, are passed over.
    """
    files = sorted(root.rglob(_ANSWERED))
    if not files:
        raise QuestionError(f'{root} holds no {_ANSWERED}')
    blocks = _STANDARD_OF if source == STANDARD else BLOCK_OF
    return [
        {**place, 'source': source, 'category': block, 'status': _read_status(entry)}
        for path in files
        for place in (dict(zip(_PLACE, place_of(path.resolve()), strict=True)),)
        for entry in _read_entries(path)
        if (block := blocks.get(str(entry.get('category', '')))) is not None
    ]


_PLACE = ('approach', 'subset', 'label')


def compare_sources(*, long: bool = False) -> Published[dict[str, str]]:
    """Return how folders of answers to standard and to PromptGT questions are scored.

    Both blocks of questions are side by side, a row for each approach, subset and light; with
    `long` each block has its own row with counts.
    """

    def sum_up(_group: Mapping[str, str], part: pd.DataFrame) -> dict[str, Any]:
        counts = {name: int((part['status'] == name).sum()) for name in _STATUSES}
        return {**counts, 'accuracy': counts['correct'] / len(part)}

    def read(roots: Sequence[Path]) -> list[dict[str, str]]:
        if len(roots) != 2:
            raise ConfigError('name two folders: of answers to standard and to PromptGT questions')
        sources = zip(roots, (STANDARD, PROMPT), strict=True)
        return [row for root, source in sources for row in read_verdicts(root, source)]

    return Published(
        read,
        lambda rows, _mode: rows,
        groups=(*_PLACE, 'source', 'category'),
        unit='total',
        modes=(Mode.NONE,),
        orders=dict.fromkeys((*_PLACE, 'category'), (...,)),
        sum_up=sum_up,
        arrange=_sort_sources if long else put_side_by_side,
    )


_STATUSES = ('correct', 'wrong', 'unknown')


def _sort_sources(rows: Scores) -> Scores:
    return sorted(rows, key=lambda row: row['source'] != STANDARD)


def put_side_by_side(rows: Scores) -> Scores:
    """Return a row for each approach, subset and light, with the accuracies of all blocks."""
    columns = [f'{s} | {c}' for c in (RELATIONS, MEASUREMENTS) for s in (STANDARD, PROMPT)]
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for item in rows:
        place = {name: item[name] for name in _PLACE}
        row = found.setdefault(tuple(place.values()), {**place, **dict.fromkeys(columns)})
        row[f'{item["source"]} | {item["category"]}'] = item['accuracy']
    return list(found.values())


def place_of(path: Path) -> tuple[str, str, str]:
    """Return the properties that the folders of a file of answers give, 'unknown' without."""
    parts = [part.lower() for part in path.parts]
    text = str(path).lower()
    folders = {'bbq': 'BBQ', 'cg': 'CG', 'conceptgraphs': 'CG'}
    exact = [folders[name] for name in ('bbq', 'cg', 'conceptgraphs') if name in parts]
    short = text.replace('conceptgraph', 'cg')
    within = [folders[name] for name in ('bbq', 'cg') if name in short]
    approach = next(iter([*exact, *within]), 'unknown')
    subset = next((name for name in ('furniture', 'manipuland') if name in text), 'unknown')
    named = (_LABELS.get(part.removeprefix('evaluated_')) for part in parts)
    return approach, subset, next(filter(None, named), 'unknown')


def _read_entries(path: Path) -> Iterator[Mapping[str, Any]]:
    data = read_json(path, QuestionError)
    if isinstance(data, list):
        yield from (entry for entry in data if isinstance(entry, dict))


def _read_status(entry: Mapping[str, Any]) -> str:
    key = next((key for key in VERDICT_KEYS if key in entry), None)
    if key is None:
        return 'unknown'
    return 'correct' if str(entry[key]).strip().lower() in RIGHT else 'wrong'


class PromptGtOptions(QuestionModelOptions):
    """Options of the suite, in addition to `QuestionModelOptions`.

    Parameters
    ----------
    specifications : Path, optional
        Folder with SCENE.yaml for scenes that do not bring their specification.
    questions : Path, optional
        Folder with SCENE_questions.json of OSMa-Bench++, asked instead of generated ones.
    """

    specifications: FilePath | None = None
    questions: FilePath | None = None


class PromptGtSuite(ExactQuestionsSuite):
    """Accuracy on PromptGT questions, and apart from it the fidelity of the scene to its prompt.

    `fidelity` is the fraction of facts of the specification that the whole scene holds, by kind of
    fact. `accuracy_faithful` (strict) is over the questions that the whole scene answers as the
    prompt does, so that a map is not blamed for the scene; `accuracy_block` (compat) has the
    categories as OSMa-Bench++ compares them, existence counted as relations.
    """

    name = SUITE
    options_type = PromptGtOptions
    asked = PROMPTGT
    main_metrics = ((Mode.NONE, 'accuracy'), (Mode.NONE, 'fidelity'))

    def list_questions(self, context: SuiteContext) -> Sequence[Question]:
        """Return the questions of a file, or of the specification."""
        folder = self._options.questions
        if folder is not None:
            file = Path(folder) / f'{context.ground_truth.scene}_questions.json'
            return read_questions(file) if file.is_file() else []
        wanted = self._find_specification(context)
        if wanted is None:
            return []
        return promptgt_questions(wanted, scene=context.scene_name, seed=context.seed)

    def _find_specification(self, context: SuiteContext) -> SceneSpecification | None:
        folder, truth = self._options.specifications, context.ground_truth
        file = None if folder is None else Path(folder) / f'{truth.scene}.yaml'
        if file is not None and file.is_file():
            return read_specification(file)
        return truth.specification

    def score(self, given: AskedQuestions) -> list[MetricRecord]:
        """Return accuracies, also on facts that hold in the scene and by blocks, and fidelity."""
        truth = given.context.ground_truth
        questions = given.questions
        verdicts = given.verdicts
        whole = ground_truth_map(truth.graph, list(truth.graph.by_id), truth.label_set)
        known = answer_all(whole, questions, RuleAnswerer())
        held = judge_all(questions, known, DeterministicJudge())
        right = {item.question_id for item in held if item.correct}
        faithful = [item for item in questions if item.id in right]
        blocks = [replace(q, category=BLOCK_OF.get(q.category, q.category)) for q in questions]
        found = super().score(given)
        for mode, metric, part in (
            (Mode.STRICT, 'accuracy_faithful', faithful), (Mode.COMPAT, 'accuracy_block', blocks),
        ):  # fmt: skip
            rows = records(SUITE, mode.value, metric, part, verdicts, answered_too=False)
            found += [row for row in rows if row.class_name or part is faithful]
        wanted = self._find_specification(given.context)
        return [*found, *(() if wanted is None else score_fidelity(wanted, given.context))]


def score_fidelity(wanted: SceneSpecification, context: SuiteContext) -> Iterator[MetricRecord]:
    """Yield the share of facts of a specification that the whole scene holds, and by kind."""
    held = list(facts(wanted, context.ground_truth.graph))
    for kind in (None, *FactKind):
        own = [fact.holds for fact in held if kind in (None, fact.kind)]
        if own:
            name = '' if kind is None else kind.value
            yield MetricRecord.of_share(SUITE, '', 'fidelity', own, name)
