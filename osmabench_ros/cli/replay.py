"""`osmabench replay`: plays a bag on the topics it was recorded from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from osmabench_ros.base.progress import shown_progress, silent
from osmabench_ros.base.settings import Named
from osmabench_ros.cli.options import with_option_groups
from osmabench_ros.cli.run import needs_ros
from osmabench_ros.errors import ConfigError
from osmabench_ros.sequences.bags.bag import open_bag
from osmabench_ros.sequences.bags.playback import PlaybackSettings


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
        from osmabench_ros.bringup.runner.replaying import replay as replay_bag
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
