"""`osmabench prompts`: scenes from texts, by a language model."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
import yaml

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.files import atomic_directory, write_json, write_text
from osmabench_ros.base.owned_folder import check_folder
from osmabench_ros.base.progress import shown_progress
from osmabench_ros.base.strict import validated
from osmabench_ros.cli.options import NewFolder, with_option_groups
from osmabench_ros.cli.vqa import Access, print_spending
from osmabench_ros.errors import ConfigError
from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.scenes.specification import SceneSpecification, read_specification
from osmabench_ros.suites.promptgt.published import write_questions
from osmabench_ros.vqa.exact.prompt_ground_truth import promptgt_questions
from osmabench_ros.vqa.llm_generated.scene_prompts import (
    promptgt_by_model,
    specification_of,
    write_prompts,
)

app = typer.Typer(help='Scenes from texts: write, specify, ask about them.', no_args_is_help=True)
PROMPTS, REJECTED = 'prompts.json', 'rejected.json'

Model = Annotated[str, typer.Option(help='Language model, e.g. openai:gpt-4.1-mini.')]


class RegimeName(str, Enum):
    """What prompts are about."""

    FURNITURE = 'furniture'
    MANIPULAND = 'manipuland'


@app.command()
@with_option_groups
def write(
    regime: Annotated[RegimeName, typer.Argument(help='Furniture alone, or with a small thing.')],
    access: Access,
    model: Model,
    out: NewFolder,
    wanted: Annotated[int | None, typer.Option(min=1, help='Prompts to keep.')] = None,
    raw: Annotated[int | None, typer.Option(min=1, help='Prompts to choose from.')] = None,
    strict: Annotated[
        bool, typer.Option('--strict', help='Filter by whole words; upstream looks within words.')
    ] = False,
    seed: Annotated[int, typer.Option(help='Seed of rooms and arrangements.')] = 42,
) -> None:
    """Write prompts of a regime, filtered, de-duplicated and spread, to prompts.json."""
    client = access.client_of(model)
    with atomic_directory(out) as draft, shown_progress() as progress:
        pool = write_prompts(
            client, regime.value, SentenceEmbedder(), wanted=wanted, raw=raw, seed=seed,
            strict=strict, progress=progress,
        )  # fmt: skip
        named = {f'{regime.value}_{i:04d}': text for i, text in enumerate(pool.kept, start=1)}
        write_json(draft / PROMPTS, named)
        rejected = [{'prompt': text, 'reasons': list(why)} for text, why in pool.rejected]
        write_json(draft / REJECTED, rejected)
    typer.echo(f'{len(named)} prompts in {out / PROMPTS}, {len(pool.rejected)} rejected')
    print_spending(client)


@app.command()
@with_option_groups
def specify(
    prompts: Annotated[Path, typer.Argument(help='prompts.json: texts by the names of scenes.')],
    access: Access,
    model: Model,
    out: NewFolder,
) -> None:
    """Turn prompts into specifications, NAME.yaml, which are scenes of osmabench run."""
    from osmabench_ros.scenes.apartment.specified import builders

    client = access.client_of(model)
    texts = validated(dict[str, str], read_json(prompts, ConfigError), str(prompts))
    with atomic_directory(out) as draft:
        for name, text in texts.items():
            made = specification_of(client, text, name, sorted(builders()))
            write_text(draft / f'{made.name}.yaml', specification_text(made))
    typer.echo(f'{len(texts)} specifications in {out}')
    print_spending(client)


@app.command()
@with_option_groups
def questions(
    specifications: Annotated[Path, typer.Argument(help='Folder of specifications, *.yaml.')],
    access: Access,
    out: NewFolder,
    model: Annotated[
        str, typer.Option(help='Model that writes them from the prompts; else exactly by rule.')
    ] = '',
    seed: Annotated[int, typer.Option(help='Seed of the exact questions.')] = 0,
) -> None:
    """Write PromptGT questions of specifications as NAME_questions.json of OSMa-Bench++."""
    check_folder(out)
    files = sorted(specifications.glob('*.yaml'))
    if not files:
        raise ConfigError(f'{specifications} holds no *.yaml; make them with prompts specify')
    client = access.client_of(model) if model else None
    count = 0
    with atomic_directory(out) as draft:
        for wanted in map(read_specification, files):
            name = wanted.name
            if client is None:
                made = promptgt_questions(wanted, scene=name, seed=seed)
            else:
                made = promptgt_by_model(client, wanted.prompt, name)
            write_questions(draft / f'{name}_questions.json', name, made)
            count += len(made)
    typer.echo(f'{count} questions about {len(files)} scenes in {out}')
    print_spending(client)


def specification_text(wanted: SceneSpecification) -> str:
    """Return a specification as YAML."""
    data = wanted.model_dump(mode='json', by_alias=True, exclude_defaults=True)
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))
