"""`osmabench replay`: a bag through the topics it was recorded from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from osmabench_ros.cli.progress import shown_progress
from osmabench_ros.errors import ConfigError, MissingDependencyError
from osmabench_ros.sequences.bag import open_bag
from osmabench_ros.sequences.playback import PlaybackOptions


def replay(
    bag: Annotated[Path, typer.Argument(help='Folder of a bag, or an .mcap or .db3 file.')],
    rate: Annotated[float, typer.Option(help='Seconds of the bag in a second.')] = 1.0,
    start: Annotated[float, typer.Option(help='Seconds into the bag to start at.')] = 0.0,
    duration: Annotated[
        float | None, typer.Option(help='Seconds of the bag to play; default: to its end.')
    ] = None,
    end: Annotated[float | None, typer.Option(help='Seconds into the bag to end at.')] = None,
    loop: Annotated[bool, typer.Option('--loop', help='Start over at the end.')] = False,
    step: Annotated[
        bool,
        typer.Option('--step', help='Start paused; Enter (or service step_run) plays a frame.'),
    ] = False,
    clock: Annotated[bool, typer.Option(help='Publish /clock.')] = True,
    topics: Annotated[
        list[str] | None, typer.Option(help='Topic to play; may be repeated. Default: all.')
    ] = None,
    remap: Annotated[
        list[str] | None, typer.Option(help='FROM:=TO; may be repeated.', metavar='FROM:=TO')
    ] = None,
    msg_path: Annotated[
        list[Path] | None,
        typer.Option(help='.msg file or folder for types that the bag does not define.'),
    ] = None,
) -> None:
    """Play a bag of any ROS 2 from Humble on into a running stack (ROS_DOMAIN_ID).

    While it plays, the services start_run, pause_run, step_run and reset_run control it.
    """
    options = PlaybackOptions(rate, start, _length(start, duration, end), loop)
    try:
        from osmabench_ros.bringup.isolation import transport_environment
        from osmabench_ros.bringup.replaying import ReplaySettings
        from osmabench_ros.bringup.replaying import replay as replay_bag
    except ImportError as error:
        raise MissingDependencyError(
            f'playing needs ROS 2 and the messages of this package ({error}); '
            'source your ROS workspace, or make env'
        ) from error
    settings = ReplaySettings(
        bag, options, step, clock, tuple(topics or ()), tuple(remap or ()), tuple(msg_path or ())
    )
    # A bag that cannot be read is told before a node is started.
    open_bag(bag, settings.msg_paths).close()
    # The player and who watches it must speak through the same transports.
    os.environ.update(transport_environment())
    console = Console(stderr=True)
    with shown_progress() as progress:
        played = replay_bag(
            settings,
            progress=progress if console.is_terminal else lambda _text, _fraction: None,
            log=lambda line: console.print(escape(line), highlight=False, style='yellow'),
        )
    typer.echo(f'played {played} messages of {bag}')


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
