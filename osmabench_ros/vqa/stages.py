"""The folder of a run, and stages on it: generate, answer and judge questions, report."""

import mimetypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.files import claim_folder, discard, write_json
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import ConfigError, IncompleteError, QuestionError
from osmabench_ros.language.client import ModelClient, Spending
from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.language.model import ImagePart
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.storage import read_map
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth
from osmabench_ros.vqa import evaluation, question_files, question_pipeline
from osmabench_ros.vqa.answering.answerer import (
    GRAPH,
    Answerer,
    AnsweringMaterial,
    make_answerer,
    parse_reference,
)
from osmabench_ros.vqa.answering.language_model import DEFAULT_GRAPH_TOKENS
from osmabench_ros.vqa.answering.pictures import list_kept_frames
from osmabench_ros.vqa.answering.rule import RuleAnswerer
from osmabench_ros.vqa.exact.generation import questions_about
from osmabench_ros.vqa.judging import Judge
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.judging.language_model import LanguageModelJudge
from osmabench_ros.vqa.question_pipeline import FrameImage, QuestionWriter
from osmabench_ros.vqa.questions import Answer, Question, Verdict
from osmabench_ros.vqa.scores import FUNCTIONAL

MANIFEST, FRAMES = 'manifest.json', 'frames'


@dataclass(frozen=True)
class RunFolder:
    """A run directory as the question stages see it, which write below `name`."""

    directory: Path
    name: str = 'vqa'

    @property
    def folder(self) -> Path:
        """Folder of the stages."""
        return self.directory / self.name

    @property
    def shared(self) -> Path:
        """Folder that the runs on the path share, as the manifest of the run names it."""
        name = Path(str(self._read_manifest_value('shared'))).name
        return self.directory.resolve().parent / 'shared' / name

    @property
    def scene(self) -> str:
        """Key of scene and seed, as questions carry it."""
        return self.shared.name

    @property
    def seed(self) -> int:
        """Seed of the path and its questions."""
        return int(self._read_manifest_value('seeds')['path and questions'])

    def _read_manifest_value(self, key: str) -> Any:
        """Return a value of the manifest of the run; QuestionError if it has none."""
        file = self.directory / MANIFEST
        data = _read_object(file)
        if key not in data:
            raise QuestionError(
                f'{self.directory} is not the folder of a run: {file} does not name "{key}"; name '
                'a folder below its matrix, or map again with this version'
            )
        return data[key]

    def ground_truth(self) -> GroundTruth:
        """Read the ground truth of the run's scene."""
        return read_ground_truth(self.shared / 'ground_truth')

    def semantic_map(self) -> SemanticMap:
        """Read the recorded map."""
        return read_map(self.directory / 'map')

    def questions(self) -> list[Question]:
        """Read the stage's questions, else those the runs of the scene share."""
        own = self.folder / question_files.QUESTIONS
        path = own if own.exists() else self.shared / question_files.QUESTIONS
        if not path.exists():
            raise QuestionError(
                f'{own} does not exist; run: osmabench vqa generate {self.directory}'
            )
        return question_files.read_records(path, Question)

    def question_images(self, questions: Sequence[Question]) -> Path:
        """Return the folder with the images of questions: the folder of the stages, or shared."""
        names = [name for question in questions for name in question.images]
        folders = (self.folder, self.shared)
        holding = (f for f in folders if all((f / name).is_file() for name in names))
        return next(holding, self.folder)

    def answers(self) -> list[Answer]:
        """Read the answers of the stage before; all of them, or it is an IncompleteError."""
        return self._complete(question_files.ANSWERS, Answer, 'answer')

    def verdicts(self) -> list[Verdict]:
        """Read the verdicts of the stage before, and on all answers, as `answers` does."""
        found = self._complete(question_files.VERDICTS, Verdict, 'judge')
        self.answers()
        return found

    def _complete(self, name: str, kind: type[Any], verb: str) -> list[Any]:
        path, remedy = self.folder / name, f'run: osmabench vqa {verb} {self.directory}'
        if not path.exists():
            raise QuestionError(f'{path} does not exist; {remedy}')
        return question_files.read_complete(path, kind, remedy)

    def summary(self, stage: str) -> dict[str, Any]:
        """Read the summary that a stage wrote, empty if it did not run."""
        return _read_object(self.folder / f'{stage}.json')

    def frames(self) -> list[FrameImage]:
        """Return the kept frames in order; the digits of a name are the frame's index."""
        folder = self.directory / FRAMES
        found = list_kept_frames(folder)
        if not found:
            raise QuestionError(
                f'{folder} holds no frames (PNG or JPEG named by number); keep some '
                'in the run, or copy them there'
            )
        types = mimetypes.types_map
        return [
            FrameImage(i, ImagePart(read_bytes(path, QuestionError), types[path.suffix.lower()]))
            for i, path in found.items()
        ]


def _read_object(path: Path) -> dict[str, Any]:
    """Return the content of a JSON object, an empty one if there is no file."""
    data = read_json(path, QuestionError) if path.exists() else {}
    if not isinstance(data, dict):
        raise QuestionError(f'{path} is not a JSON object; run the stage again')
    return data


SCORES = 'scores.json'


@dataclass(frozen=True)
class AnswerOptions:
    """How a language model is shown a map; `compat` has the published prompts."""

    compat: bool = False
    graph_tokens: int = DEFAULT_GRAPH_TOKENS
    without_map: bool = False


def generate_exact(run: RunFolder, *, seed: int, count: int | None = None) -> list[Question]:
    """Write exact questions about the run's ground truth."""
    truth = run.ground_truth()
    claim_folder(run.folder)
    questions = questions_about(truth, scene=run.scene, seed=seed, count=count)
    question_files.write_records(run.folder / question_files.QUESTIONS, questions)
    return questions


def chosen_frames(run: RunFolder, *, every: int, novelty: bool, most: int) -> list[FrameImage]:
    """Return at most `most` kept frames to write about: each n-th, or by new poses."""
    frames = run.frames()
    if not novelty:
        return frames[:: max(1, every)][:most]
    poses = run.ground_truth().camera_poses
    known = [frame for frame in frames if frame.index < len(poses)]
    taken = question_pipeline.novel_frames([poses[frame.index] for frame in known], most)
    return [known[i] for i in taken]


def estimate(client: ModelClient | None, work: Callable[[], object]) -> Spending | None:
    """Return what work with a dry client would take; None without a client."""
    if client is None:
        return None
    with suppress(IncompleteError):
        work()
    return client.ledger.spending


def estimate_written(client: ModelClient, frames: Sequence[FrameImage]) -> Spending:
    """Return what questions about frames would take, if every one reaches the check."""
    client.ask_all(question_pipeline.estimate_requests(QuestionWriter(client), frames), str)
    return client.ledger.spending


def generate_written(
    run: RunFolder,
    client: ModelClient,
    frames: Sequence[FrameImage],
    progress: Progress = silent,
) -> list[Question]:
    """Have a model write questions.jsonl about frames, generation.json and histogram.svg."""
    scene = run.scene
    with _keep_accounts(run, 'generate', client):
        written = QuestionWriter(client).write(frames, scene=scene, progress=progress)
    question_files.write_records(run.folder / question_files.QUESTIONS, written.questions)
    write_json(run.folder / 'generation.json', {**written.to_json(), 'model': client.name})
    question_pipeline.write_histogram(
        run.folder / 'histogram.svg', written.histogram_before, written.histogram_after
    )
    return list(written.questions)


def answer(
    run: RunFolder,
    asked: evaluation.QuestionedMap,
    answerer: Answerer,
    client: ModelClient | None,
    options: AnswerOptions,
    progress: Progress = silent,
) -> list[Answer]:
    """Answer a run's questions by an answerer and its model; write answers, answering.json."""
    questions = run.questions()
    with _keep_accounts(run, 'answer', client):
        return evaluation.answer_and_keep(
            run.folder, asked.semantic_map, questions, answerer, progress, asdict(options)
        )


RULE = RuleAnswerer.name


def choose_answerer(
    run: RunFolder,
    asked: evaluation.QuestionedMap,
    reference: str,
    client: ModelClient | None,
    options: AnswerOptions,
) -> Answerer:
    """Return the answerer that a reference names, with its model, for a run's questions."""
    if reference == RULE:
        return asked.rules
    name, _ = parse_reference(reference)
    if options.without_map:
        name = 'question_only'
    elif options.compat and name != GRAPH:
        raise ConfigError(f'--compat only has prompts for the answerer "{GRAPH}", not "{name}"')
    prompts = {'compat': options.compat} if name == GRAPH else {}
    images = run.question_images(run.questions())
    material = AnsweringMaterial(client, asked.embedder, run.directory / FRAMES, images)
    return make_answerer(name, material, prompts, graph_tokens=options.graph_tokens)


def estimate_answers(
    run: RunFolder, asked: evaluation.QuestionedMap, answerer: Answerer, client: ModelClient
) -> Spending | None:
    """Return what `answer` would ask; None where that depends on the replies."""
    work = partial(evaluation.answer_all, asked.semantic_map, run.questions(), answerer)
    found = estimate(client, work)
    return None if 'incomplete' in evaluation.summary_of(answerer) else found


def judge(
    run: RunFolder,
    asked: evaluation.QuestionedMap,
    client: ModelClient | None,
    progress: Progress = silent,
) -> list[Verdict]:
    """Judge a run's answers by rule or language model; write verdicts.jsonl and judging.json."""
    judging = asked.equality if client is None else LanguageModelJudge(client)
    questions = run.questions()
    answers = run.answers()
    with _keep_accounts(run, 'judge', client):
        return evaluation.judge_and_keep(run.folder, questions, answers, judging, progress)


def judge_of_free_text(client: ModelClient | None) -> Judge:
    """Return the model's judge, else the one by rule with the embedder if it is installed."""
    if client is not None:
        return LanguageModelJudge(client)
    return DeterministicJudge(SentenceEmbedder() if SentenceEmbedder.is_available() else None)


def estimate_verdicts(run: RunFolder, client: ModelClient | None) -> Spending | None:
    """Return what `judge` would ask; None by rule."""
    judging = judge_of_free_text(client)
    return estimate(client, lambda: evaluation.judge_all(run.questions(), run.answers(), judging))


def report(
    run: RunFolder, asked: evaluation.QuestionedMap, *, compat: bool = False
) -> list[MetricRecord]:
    """Return and write the accuracies of a run's verdicts next to baselines and ceiling.

    Answers or verdicts that a server failed to give are an IncompleteError. In `compat` the
    paper's exclusions apply, and answers that the judge failed on leave the denominator.
    """
    # Scores of an earlier report must not pass for the ones that are found now, or not found.
    discard(run.folder / SCORES)
    questions = run.questions()
    verdicts = run.verdicts()
    claim_folder(run.folder)
    if compat:
        lost = {verdict.question_id for verdict in verdicts if not verdict.judged}
        questions = [question for question in questions if question.id not in lost]
    suite = questions[0].suite if questions else ''
    mode = 'compat' if compat else ''
    # The paper leaves functional relations out of its accuracies.
    excluded = FUNCTIONAL if compat else ()
    found = evaluation.scored(
        asked, questions, verdicts, suite=suite, mode=mode, excluded=excluded
    )
    answering = run.summary('answering')
    found += evaluation.records_of_summary(suite, asked.semantic_map, answering, len(questions))
    scores = {'metrics': [r.to_json() for r in found], **stage_summaries(run)}
    write_json(run.folder / SCORES, scores)
    return found


def check_same_questions(runs: Sequence[RunFolder]) -> None:
    """Raise QuestionError if runs in one scene were asked different questions."""
    for other in runs[1:]:
        if other.questions() != runs[0].questions():
            raise QuestionError(
                f'{runs[0].directory} and {other.directory} cannot be compared: they were asked '
                'different questions; report each by itself'
            )


def stage_summaries(run: RunFolder) -> dict[str, Any]:
    """Return who answered and judged, with which prompts, and what did not fit, by stage."""
    return {name: data for name in ('answering', 'judging') if (data := run.summary(name))}


def remarks(run: RunFolder) -> list[str]:
    """Return the notes to report next to the accuracies of a run."""
    found = stage_summaries(run)
    lines = [
        f'{stage} by {data.get(who, "?")}'
        + (f', prompt {data["prompt"]}' if 'prompt' in data else '')
        for stage, who in (('answering', 'answerer'), ('judging', 'judge'))
        if (data := found.get(stage)) is not None
    ]
    answering = found.get('answering', {})
    if 'dropped_nodes' in answering and not answering.get('compat'):
        lines.append(
            f'left out of the prompts to fit {answering["graph_tokens"]} tokens: '
            f'{answering["dropped_nodes"]} nodes, {answering["dropped_relations"]} relations'
        )
    for reason, count in answering.get('incomplete', {}).items():
        lines.append(f'{count} answers came to no end: {reason}')
    return lines


@contextmanager
def _keep_accounts(run: RunFolder, stage: str, client: ModelClient | None) -> Iterator[None]:
    """Claim the folder, and keep the accounts of a stage, however it ends.

    Those of a first and of a cached run differ.
    """
    claim_folder(run.folder)
    try:
        yield
    finally:
        if client is not None:
            write_json(run.folder / f'spending_{stage}.json', asdict(client.ledger.spending))
