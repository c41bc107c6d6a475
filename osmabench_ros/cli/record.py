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

from osmabench_ros.base.settings import Named
from osmabench_ros.cli.options import with_option_groups
from osmabench_ros.cli.run import needs_ros
from osmabench_ros.errors import ConfigError
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
        from osmabench_ros.bringup.runner.recording import record as record_bag
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
