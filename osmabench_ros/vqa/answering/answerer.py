"""The interface of answerers, and how one is made by name."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from osmabench_ros.base.configuration import (
    ANSWERERS,
    LANGUAGE_MODELS,
    extension_names,
    load_extension,
)
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import ConfigError
from osmabench_ros.language.client import ModelClient
from osmabench_ros.language.embedding import Embedder
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.vqa.questions import Answer, Inquiry

# The answerer that is meant where only a language model is named.
GRAPH = 'graph'
# Those that show a model as much of the graph as fits into a budget.
_SHOW_GRAPH = (GRAPH, 'caption')

# Questions between two reports of progress.
REPORTED_EVERY = 20


class Answerer(Protocol):
    """Answers questions from a recorded map.

    An answerer is made by its entry point in the group ``osmabench.answerers``, called as
    ``factory(material=Material, options=dict)``. An option that it does not know is a ConfigError.
    It is made once before a run starts, to find such errors, so that making one costs nothing.
    If it has a `summary`, JSON data such as the prompt, that is saved next to the answers.
    """

    # Name in answers and tables, with the name of its language model.
    name: str

    def answer(
        self,
        semantic_map: SemanticMap,
        inquiries: Sequence[Inquiry],
        progress: Progress = silent,
    ) -> list[Answer]:
        """Return an answer for each inquiry; those that are left out count as unanswered.

        Raises IncompleteError, which has all answers, if a server failed to give some.
        """
        ...


class OneByOne(ABC):
    """Answers the questions about a map one after another. Implements `Answerer`."""

    name = 'rule'

    @abstractmethod
    def answering(self, semantic_map: SemanticMap) -> Callable[[Inquiry], Answer]:
        """Return what answers each question about a map."""

    def answer(
        self,
        semantic_map: SemanticMap,
        inquiries: Sequence[Inquiry],
        progress: Progress = silent,
    ) -> list[Answer]:
        """Return one answer for each inquiry, value None where there is none."""
        answered = self.answering(semantic_map)
        answers: list[Answer] = []
        for item in inquiries:
            answers.append(answered(item))
            if len(answers) % REPORTED_EVERY == 0:
                progress('', len(answers) / len(inquiries))
        return answers


@dataclass(frozen=True, eq=False)
class AnsweringMaterial:
    """Material that an answerer may use in addition to the map and the questions.

    Parameters
    ----------
    client : ModelClient, optional
        The language model that its name goes with, e.g. ``'tools:openai:qwen3'``.
    embedder : Embedder, optional
        Matches labels of maps that do not speak the label set of the scene.
    frames : Path, optional
        Folder of the images that the run kept, named by number.
    question_images : Path, optional
        Folder that the images of questions are relative to.
    """

    client: ModelClient | None = None
    embedder: Embedder | None = None
    frames: Path | None = None
    question_images: Path | None = None

    def require_client(self, answerer: str) -> ModelClient:
        """Return the language model; ConfigError if none was named."""
        if self.client is None:
            raise ConfigError(
                f'answerer "{answerer}" asks a language model; name one, e.g. '
                f'{answerer}:openai:qwen3'
            )
        return self.client


def parse_reference(reference: str) -> tuple[str, str]:
    """Return answerer and language model, '' for none; a model name means the graph answerer."""
    name, _, model = reference.partition(':')
    if name not in extension_names(ANSWERERS) and (
        model or name in extension_names(LANGUAGE_MODELS)
    ):
        return GRAPH, reference
    return name, model


def make_answerer(
    name: str,
    material: AnsweringMaterial,
    options: Mapping[str, Any] = MappingProxyType({}),
    *,
    graph_tokens: int | None = None,
) -> Answerer:
    """Make the answerer of an entry point, e.g. ``'rule'``.

    `graph_tokens` is the budget of those that show the graph, unless their options have one.

    Raises ConfigError if there is none, it cannot be imported, an option is wrong, or it needs a
    language model and has none.
    """
    factory = load_extension(ANSWERERS, name)
    budget = {'graph_tokens': graph_tokens} if graph_tokens and name in _SHOW_GRAPH else {}
    answerer: Answerer = factory(material=material, options={**budget, **options})
    return answerer
