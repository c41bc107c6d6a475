"""Records beside a running stack until Ctrl-C, or for some time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from osmabench_ros.base.files import check_folder
from osmabench_ros.bringup.runner.foreground import foreground_node
from osmabench_ros.bringup.spec.run_recording import recorder_node
from osmabench_ros.errors import RunError, SequenceError
from osmabench_ros.sequences.bags.recording_report import (
    RecordingReport,
    RecordingSettings,
    read_report,
)

FINISH_S = 600.0
"""For what waits to be written on a slow disk, and for the index."""
PERIOD_S = 0.5

Show = Callable[[RecordingReport], None]


def record(
    directory: Path,
    settings: RecordingSettings,
    *,
    duration_s: float = 0.0,
    progress: Show,
    log: Callable[[str], None],
) -> RecordingReport:
    """Record until Ctrl-C or for `duration_s`; RunError if it fails; what was written is kept."""
    check_folder(directory)
    deadline_s = time.monotonic() + duration_s if duration_s else None
    with foreground_node(
        recorder_node(directory, settings), ['-p', 'autostart:=true'], grace_s=FINISH_S
    ) as recorder:
        try:
            while recorder.poll() is None and (
                deadline_s is None or time.monotonic() < deadline_s
            ):
                time.sleep(PERIOD_S)
                for line in recorder.new_lines():
                    log(line)
                _show(directory, progress)
        except (KeyboardInterrupt, SystemExit):
            log('finishing the bag')  # Ctrl-C is how a recording ends
        recorder.stop(FINISH_S)
        if recorder.poll() != 0:
            raise RunError(f'recording failed: {recorder.reason()}')
    return read_report(directory)


def _show(directory: Path, progress: Show) -> None:
    try:
        progress(read_report(directory))
    except SequenceError:
        return  # not written yet
