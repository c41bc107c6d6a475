"""Judges of answers: by rule, or by a language model."""

from collections.abc import Sequence
from typing import Protocol

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.vqa.questions import Answer, Question, Verdict


class Judge(Protocol):
    """Judges answers."""

    name: str

    def judge(
        self, pairs: Sequence[tuple[Question, Answer | None]], progress: Progress = silent
    ) -> list[Verdict]:
        """Return one verdict for each pair; no answer is a wrong answer."""
        ...
