"""Names of the services and actions of a run; all names are relative and remappable."""

from __future__ import annotations

START_RUN = 'start_run'
PAUSE_RUN = 'pause_run'
STEP_RUN = 'step_run'
RESET_RUN = 'reset_run'

GET_SIMULATOR_FEATURES = 'get_simulator_features'
GET_SIMULATION_STATE = 'get_simulation_state'
SET_SIMULATION_STATE = 'set_simulation_state'
STEP_SIMULATION = 'step_simulation'
RESET_SIMULATION = 'reset_simulation'
SIMULATE_STEPS = 'simulate_steps'
"""The names that simulators use which speak simulation_interfaces."""

FINISH_MAP = 'finish_map'
"""Lets the map adapter know that no further frame will follow, where no bridge says so."""
