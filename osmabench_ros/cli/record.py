"""`osmabench record` and `osmabench replay`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table

from osmabench_ros.base.progress import shown_progress, silent
from osmabench_ros.base.settings import Named
from osmabench_ros.cli.options import with_option_groups
from osmabench_ros.cli.run import needs_ros
from osmabench_ros.errors import ConfigError
from osmabench_ros.sequences.bags.bag import open_bag
from osmabench_ros.sequences.bags.playback import PlaybackSettings
from osmabench_ros.sequences.bags.recording_report import RecordingReport, RecordingSettings

UNITS = {'': 1, 'K': 10**3, 'M': 10**6, 'G': 10**9, 'T': 10**12}


@with_option_groups
def record(
    out: Annotated[Path, typer.Option(help='Folder of the bag; must not exist, or be empty.')],
    recording: Annotated[
        RecordingSettings,
        Named(
            *('topics', 'exclude', 'compression', 'acks'),
            all_topics='all',
            max_file_s='split-duration',
        ),
    ],
    split_size: Annotated[
        str, typer.Option(help='Begin a new file at this size, e.g. 2G; 0 never.')
    ] = '0',
    duration: Annotated[
        float, typer.Option(min=0.0, help='End after these seconds; 0 at Ctrl-C.')
    ] = 0.0,
) -> None:
    """Record topics of a running stack (ROS_DOMAIN_ID) to an MCAP bag until Ctrl-C.

    Says at the end how many messages of each topic are there and how many were lost.
    """
    max_file_bytes = bytes_from_text(split_size)
    with needs_ros('recording'):
        from osmabench_ros.bringup.runner.foreground import record as record_bag
    settings = recording.model_copy(update={'max_file_bytes': max_file_bytes})
    console = Console(stderr=True)
    with console.status('recording; Ctrl-C ends it') as status:
        report = record_bag(
            out,
            settings,
            duration_s=duration,
            progress=lambda now: _show(status, now),
            log=lambda line: console.print(escape(line), highlight=False, style='dim'),
        )
    print_report(report, out)


def bytes_from_text(text: str) -> int:
    """Return a number of bytes such as ``2G``, ``500MB`` or ``1000000``; may raise ConfigError."""
    match = re.fullmatch(r'\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*', text, re.IGNORECASE)
    if match is None:
        raise ConfigError(f'split size "{text}" is no size; write e.g. 500M or 2G')
    return round(float(match[1]) * UNITS[match[2].upper()])


def print_report(report: RecordingReport, directory: Path) -> None:
    """Print a table of topics, counts and losses."""
    table = Table(title=escape(f'{directory}: {report.duration_s:.1f} s'), title_justify='left')
    table.add_column('topic')
    table.add_column('type')
    table.add_column('messages', justify='right')
    table.add_column('lost', justify='right')
    for item in report.topics:
        if item.written or item.lost:
            table.add_row(item.topic, item.message_type, str(item.written), str(item.lost))
    for topic, reason in report.skipped.items():
        table.add_row(topic, escape(reason), 'not recorded', '')
    console = Console()
    console.print(table)
    console.print(report.summary(), highlight=False, soft_wrap=True)


def _show(status: Status, report: RecordingReport) -> None:
    status.update(
        f'recording {report.duration_s:.0f} s: {report.messages} messages, '
        f'{report.bytes_written / 2**20:.0f} MiB, {report.lost} lost; Ctrl-C ends it'
    )


@with_option_groups
def replay(
    bag: Annotated[Path, typer.Argument(help='Folder of a bag, or an .mcap or .db3 file.')],
    playback: Annotated[
        PlaybackSettings,
        Named('rate', 'loop', 'clock', 'topics', start_s='start', msg_paths='msg-path'),
    ],
    duration: Annotated[
        float | None, typer.Option(help='Seconds of the bag to play; default: to its end.')
    ] = None,
    end: Annotated[float | None, typer.Option(help='Seconds into the bag to end at.')] = None,
    step: Annotated[
        bool,
        typer.Option('--step', help='Start paused; Enter (or service step_run) plays a frame.'),
    ] = False,
    remap: Annotated[
        list[str] | None, typer.Option(help='FROM:=TO; may be repeated.', metavar='FROM:=TO')
    ] = None,
) -> None:
    """Play a bag of any ROS 2 from Humble on into a running stack (ROS_DOMAIN_ID).

    While it plays, the services start_run, pause_run, step_run and reset_run control it.
    """
    for rule in remap or ():
        _check_remapping(rule)
    length_s = _length(playback.start_s, duration, end)
    given = {'bag': bag.absolute(), 'paused': step, 'duration_s': length_s}
    settings = playback.model_copy(update=given)
    with needs_ros('playing'):
        from osmabench_ros.bringup.runner.foreground import replay as replay_bag
        from osmabench_ros.bringup.spec.isolation import transport_environment
    # An unreadable bag is reported before a node is started.
    open_bag(bag, settings.msg_paths).close()
    # The player and who watches it must speak through the same transports.
    os.environ.update(transport_environment())
    console = Console(stderr=True)
    with shown_progress() as progress:
        played = replay_bag(
            settings,
            remap=remap or (),
            progress=progress if console.is_terminal else silent,
            log=lambda line: console.print(escape(line), highlight=False, style='yellow'),
        )
    typer.echo(f'played {played} messages of {bag}')


def _check_remapping(rule: str) -> None:
    name, separator, target = rule.partition(':=')
    if not (name and separator and target):
        raise ConfigError(f'remapping "{rule}" is malformed; write FROM:=TO')


def _length(start: float, duration: float | None, end: float | None) -> float:
    """Return seconds to play, 0 for all."""
    if duration is not None and end is not None:
        raise ConfigError('give --duration or --end, not both')
    if end is not None:
        if end <= start:
            raise ConfigError(f'--end {end:g} does not come after --start {start:g}')
        return end - start
    if duration is not None and not duration > 0:
        raise ConfigError(f'--duration is {duration:g} s; give a number above 0')
    return duration or 0.0
