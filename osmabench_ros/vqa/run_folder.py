"""The folder with questions, answers and verdicts of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import QuestionError
from osmabench_ros.language.model import ImagePart
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.storage import read_map
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth
from osmabench_ros.vqa.answering.pictures import kept_frames
from osmabench_ros.vqa.question_files import (
    ANSWERS,
    QUESTIONS,
    VERDICTS,
    read_complete,
    read_records,
)
from osmabench_ros.vqa.question_pipeline import FrameImage
from osmabench_ros.vqa.questions import Answer, Question, Verdict

_MEDIA_TYPES = {'.png': 'image/png', '.jpg': 'image/jpeg', '.jpeg': 'image/jpeg'}
MANIFEST = 'manifest.json'


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
        name = Path(str(self._noted('shared'))).name
        return self.directory.resolve().parent / 'shared' / name

    @property
    def scene(self) -> str:
        """Key of scene and seed, as questions carry it."""
        return self.shared.name

    @property
    def seed(self) -> int:
        """Seed of the path and its questions."""
        return int(self._noted('seeds')['path and questions'])

    def _noted(self, key: str) -> Any:
        """Return a value of the manifest of the run; QuestionError if it has none."""
        file = self.directory / MANIFEST
        data = read_json(file, QuestionError) if file.exists() else {}
        if not isinstance(data, dict) or key not in data:
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
        own = self.folder / QUESTIONS
        path = own if own.exists() else self.shared / QUESTIONS
        if not path.exists():
            raise QuestionError(
                f'{own} does not exist; run: osmabench vqa generate {self.directory}'
            )
        return read_records(path, Question)

    def question_images(self, questions: Sequence[Question]) -> Path:
        """Return the folder that the images of questions lie in: that of the stages, or shared."""
        names = [name for question in questions for name in question.images]
        folders = (self.folder, self.shared)
        holding = (f for f in folders if all((f / name).is_file() for name in names))
        return next(holding, self.folder)

    def answers(self) -> list[Answer]:
        """Read the answers of the stage before; all of them, or it is an IncompleteError."""
        return self._complete(ANSWERS, Answer, 'answer')

    def verdicts(self) -> list[Verdict]:
        """Read the verdicts of the stage before, and on all answers, as `answers` does."""
        found = self._complete(VERDICTS, Verdict, 'judge')
        self.answers()
        return found

    def _complete(self, name: str, kind: type[Any], verb: str) -> list[Any]:
        path, remedy = self.folder / name, f'run: osmabench vqa {verb} {self.directory}'
        if not path.exists():
            raise QuestionError(f'{path} does not exist; {remedy}')
        return read_complete(path, kind, remedy)

    def summary(self, stage: str) -> dict[str, Any] | None:
        """Read what a stage wrote about itself, None if it did not run."""
        path = self.folder / f'{stage}.json'
        if not path.exists():
            return None
        data = read_json(path, QuestionError)
        if not isinstance(data, dict):
            raise QuestionError(f'{path} is no JSON object; run the stage again')
        return data

    def frames(self) -> list[FrameImage]:
        """Return the kept frames in order; the digits of a name are the frame's index."""
        found = kept_frames(self.frames_folder)
        if not found:
            raise QuestionError(
                f'{self.frames_folder} holds no frames (PNG or JPEG named by number); keep some '
                'in the run, or copy them there'
            )
        return [
            FrameImage(
                index,
                ImagePart(read_bytes(path, QuestionError), _MEDIA_TYPES[path.suffix.lower()]),
            )
            for index, path in found.items()
        ]

    @property
    def frames_folder(self) -> Path:
        """Folder of the frames that the run kept."""
        return self.directory / 'frames'
