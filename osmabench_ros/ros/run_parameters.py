"""Parameters that say how a bridge paces a run, and what it says of it."""

from __future__ import annotations

from osmabench_ros.ros.parameters import ParameterSpec

RUN_PARAMETERS = (
    ParameterSpec('run_id', 'unnamed', 'Identity of the run, repeated in run_info.'),
    ParameterSpec('mapper', '', 'Name of the mapping method, repeated in run_info.'),
    ParameterSpec('config_sha256', '', 'Digest of the configuration, repeated in run_info.'),
    ParameterSpec('pacing', 'lockstep', 'Pacing of the run.', choices=('lockstep', 'realtime')),
    ParameterSpec('speed_factor', 1.0, 'Realtime: stamp seconds per wall second.', 0.001, 1000.0),
    ParameterSpec('start_paused', False, 'Publish nothing before start_run or step_run.'),
    ParameterSpec(
        'participants',
        [''],
        'Nodes to wait for: NAME, or NAME:acks if it acknowledges frames; :unsigned behind that '
        'if it does not know the run token.',
    ),
    ParameterSpec('map_publisher', '', 'Only node that may publish the map; empty for any.'),
    ParameterSpec('match_timeout_s', 60.0, 'Wait for participants, seconds.', 0.1, 86400.0),
    ParameterSpec('ack_timeout_s', 120.0, 'Wait for acknowledgements, seconds.', 0.1, 86400.0),
)
