"""Keeps what several suites asked apart, where each writes the same names."""

from __future__ import annotations

from pathlib import Path

from osmabench_ros.vqa.exact.generation import SUITE
from osmabench_ros.vqa.question_files import ANSWERS, QUESTIONS, VERDICTS

_FILES = (QUESTIONS, ANSWERS, VERDICTS)


class QuestionFolders:
    """Parts the question files of suites that write to one folder, one after another.

    The exact questions, or else the first suite that asked, end in the folder itself; the others
    in folders of their own name below it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._parted: dict[str, Path] = {}

    def part(self, suite: str) -> None:
        """Set the files aside that a suite has just written; nothing if it asked nothing."""
        if not (self._directory / QUESTIONS).exists():
            return
        self._parted[suite] = self._directory / suite
        self._parted[suite].mkdir()
        for file in _FILES:
            if (self._directory / file).exists():
                (self._directory / file).rename(self._parted[suite] / file)

    def settle(self) -> None:
        """Put the files of the main suite into the folder itself; once all suites are done."""
        if not self._parted:
            return
        main = self._parted.get(SUITE) or next(iter(self._parted.values()))
        for file in sorted(main.iterdir()):
            file.rename(self._directory / file.name)
        main.rmdir()
