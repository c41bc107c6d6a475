"""`osmabench record`: topics of a running stack into a bag."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table

from osmabench_ros.errors import ConfigError, MissingDependencyError
from osmabench_ros.sequences.recording_options import Compression
from osmabench_ros.sequences.recording_report import RecordingReport

UNITS = {'': 1, 'K': 10**3, 'M': 10**6, 'G': 10**9, 'T': 10**12}


def record(
    out: Annotated[Path, typer.Option(help='Folder of the bag; must not exist, or be empty.')],
    topics: Annotated[
        list[str] | None,
        typer.Option(help='Topic to record; may be repeated. Default: the topic contract.'),
    ] = None,
    all_topics: Annotated[bool, typer.Option('--all', help='Record every topic.')] = False,
    exclude: Annotated[
        str, typer.Option(help='Leave out topics that this regular expression matches.')
    ] = '',
    split_size: Annotated[
        str, typer.Option(help='Begin a new file at this size, e.g. 2G; 0 never.')
    ] = '0',
    split_duration: Annotated[
        float, typer.Option(min=0.0, help='Begin a new file after these seconds; 0 never.')
    ] = 0.0,
    compression: Annotated[Compression, typer.Option(help='Of the bag.')] = Compression.ZSTD,
    duration: Annotated[
        float, typer.Option(min=0.0, help='End after these seconds; 0 at Ctrl-C.')
    ] = 0.0,
    acks: Annotated[
        bool,
        typer.Option('--acks', help='Acknowledge frames, as a declared participant of a run.'),
    ] = False,
) -> None:
    """Record topics of a running stack (ROS_DOMAIN_ID) to an MCAP bag until Ctrl-C.

    Says at the end how many messages of each topic are there and how many were lost.
    """
    _check_pattern(exclude)
    max_file_bytes = bytes_from_text(split_size)
    try:
        from osmabench_ros.bringup.recording import RecordingSettings
        from osmabench_ros.bringup.recording import record as record_bag
    except ImportError as error:
        raise MissingDependencyError(
            f'recording needs ROS 2 and the messages of this package ({error}); '
            'source your ROS workspace, or make env'
        ) from error
    settings = RecordingSettings(
        out,
        tuple(topics or ()),
        all_topics,
        exclude,
        compression,
        max_file_bytes,
        split_duration,
        acks,
    )
    console = Console(stderr=True)
    with console.status('recording; Ctrl-C ends it') as status:
        report = record_bag(
            settings,
            duration_s=duration,
            progress=lambda now: _show(status, now),
            log=lambda line: console.print(escape(line), highlight=False, style='dim'),
        )
    print_report(report, out)


def _check_pattern(text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(
            f"--exclude {text} is no regular expression: {error}; write e.g. '/camera/.*'"
        ) from error


def bytes_from_text(text: str) -> int:
    """Return a number of bytes such as ``2G``, ``500MB`` or ``1000000``; K is 1000.

    Raises
    ------
    ConfigError
        If it is none.
    """
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
