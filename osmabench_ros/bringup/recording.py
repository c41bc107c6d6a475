"""Records beside a running stack until Ctrl-C, or for some time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.base.files import check_folder
from osmabench_ros.bringup.foreground import foreground_node
from osmabench_ros.bringup.node_spec import NodeSpec
from osmabench_ros.errors import RunError, SequenceError
from osmabench_ros.ros.node_names import BAG_RECORDER
from osmabench_ros.sequences.recording_options import Compression
from osmabench_ros.sequences.recording_report import RecordingReport, read_report

FINISH_S = 600.0
"""For what waits to be written on a slow disk, and for the index."""
PERIOD_S = 0.5

Progress = Callable[[RecordingReport], None]


@dataclass(frozen=True)
class RecordingSettings:
    """What to record, and how, into a folder that must not exist.

    No topics are those of the contract; `exclude` is a regular expression; another file begins at
    `max_file_bytes` or `max_file_s` seconds, at 0 never; `acks` takes part in a lockstep run.
    """

    directory: Path
    topics: tuple[str, ...] = ()
    all_topics: bool = False
    exclude: str = ''
    compression: Compression = Compression.ZSTD
    max_file_bytes: int = 0
    max_file_s: float = 0.0
    acks: bool = False
    more_topics: tuple[str, ...] = ()

    def node(self) -> NodeSpec:
        """Return the node that does it."""
        return NodeSpec(
            BAG_RECORDER,
            'bag_recorder_node',
            {
                'bag_directory': str(self.directory.absolute()),
                'topics': list(self.topics) or [''],
                'more_topics': list(self.more_topics) or [''],
                'all_topics': self.all_topics,
                'exclude': self.exclude,
                'compression': self.compression.value,
                'max_file_bytes': self.max_file_bytes,
                'max_file_s': self.max_file_s,
                'acks': self.acks,
            },
            acks=self.acks,
        )


def record(
    settings: RecordingSettings,
    *,
    duration_s: float = 0.0,
    progress: Progress,
    log: Callable[[str], None],
) -> RecordingReport:
    """Record until Ctrl-C, or for some seconds if `duration_s` is not 0.

    `progress` gets the counts twice a second, `log` what the recorder logs. Raises RunError if
    there is something in the folder, or the recorder fails, the disk being full say; what was
    written is kept.
    """
    check_folder(settings.directory)
    deadline_s = time.monotonic() + duration_s if duration_s else None
    with foreground_node(settings.node(), ['-p', 'autostart:=true'], grace_s=FINISH_S) as recorder:
        try:
            while recorder.poll() is None and (
                deadline_s is None or time.monotonic() < deadline_s
            ):
                time.sleep(PERIOD_S)
                for line in recorder.new_lines():
                    log(line)
                _show(settings.directory, progress)
        except (KeyboardInterrupt, SystemExit):
            log('finishing the bag')  # Ctrl-C is how a recording ends
        recorder.stop(FINISH_S)
        if recorder.poll() != 0:
            raise RunError(f'recording failed: {recorder.reason()}')
    return read_report(settings.directory)


def _show(directory: Path, progress: Progress) -> None:
    try:
        progress(read_report(directory))
    except SequenceError:
        return  # not written yet
