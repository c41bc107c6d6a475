"""The navigation mesh: islands, shortest paths, and a follower that turns and steps."""

from __future__ import annotations

import math
from typing import Any

import habitat_sim
import magnum
import numpy as np

from .session import BODY_AGENT

LARGE_SHARE = 0.25
"""An island of at least this share of the largest one's area is a floor; smaller ones are
furniture."""

SAME_FLOOR_M = 0.5


class Walking:
    """Navigation mesh of a scene for one size of robot."""

    def __init__(self, simulator: Any, settings: dict[str, Any]) -> None:
        self._simulator = simulator
        self.finder = simulator.pathfinder
        if settings['mesh_file']:
            if not self.finder.load_nav_mesh(settings['mesh_file']):
                raise ValueError(f'{settings["mesh_file"]} is no navigation mesh')
            built = True
        else:
            built = self._compute(settings)
        if not built or not self.finder.is_loaded or self.finder.num_islands == 0:
            raise ValueError(
                f'no floor fits a robot of radius {settings["radius_m"]} m and height '
                f'{settings["height_m"]} m'
            )
        self._choose_island(settings['floor_height_m'])

    def _compute(self, settings: dict[str, Any]) -> bool:
        mesh = habitat_sim.NavMeshSettings()
        mesh.set_defaults()
        mesh.agent_radius, mesh.agent_height = settings['radius_m'], settings['height_m']
        mesh.cell_size = mesh.cell_height = settings['cell_m']
        mesh.include_static_objects = True
        return bool(self._simulator.recompute_navmesh(self.finder, mesh))

    def _choose_island(self, floor_height_m: float | None) -> None:
        """Take the floor at a height, or the lowest one: the largest island may be a roof."""
        islands = []
        for index in range(self.finder.num_islands):
            vertices = self.finder.build_navmesh_vertices(index)
            heights = sorted(float(vertex[1]) for vertex in vertices)
            islands.append((heights[len(heights) // 2], self.finder.island_area(index), index))
        if floor_height_m is not None:
            near = [item for item in islands if abs(item[0] - floor_height_m) < SAME_FLOOR_M]
            if not near:
                known = ', '.join(f'{height:.2f}' for height, _, _ in sorted(islands))
                raise ValueError(
                    f'no navigable surface is at height {floor_height_m} m, there are {known}'
                )
            chosen = max(near, key=lambda item: item[1])
        else:
            enough = LARGE_SHARE * max(area for _, area, _ in islands)
            chosen = min(item for item in islands if item[1] >= enough)
        self.height_m, self.area_m2, self.island = chosen

    def random_points(self, count: int, seed: int) -> list[list[float]]:
        """Return navigable positions, drawn uniformly."""
        self.finder.seed(seed)
        return [
            list(self.finder.get_random_navigable_point(island_index=self.island))
            for _ in range(count)
        ]

    def snapped(self, point: list[float]) -> list[float] | None:
        """Return the nearest navigable position that is no more than a cell away, or None."""
        found = self.finder.snap_point(magnum.Vector3(*point), island_index=self.island)
        values = [float(value) for value in found]
        gap = ((values[0] - point[0]) ** 2 + (values[2] - point[2]) ** 2) ** 0.5
        if not gap <= self.finder.nav_mesh_settings.cell_size:  # not a number: nothing is near
            return None
        return values

    def shortest_path(
        self, start: list[float], goal: list[float]
    ) -> tuple[float | None, list[list[float]]]:
        """Return the geodesic distance and the corners of the way; None if there is no way."""
        path = habitat_sim.ShortestPath()
        path.requested_start, path.requested_end = start, goal
        if not self.finder.find_path(path):
            return None, []
        return float(path.geodesic_distance), [[float(v) for v in p] for p in path.points]

    def follow(self, request: dict[str, Any]) -> list[list[float]]:
        """Drive a robot that can only step ahead and turn in place to a goal.

        `request` holds 'start', 'goal', 'yaw_rad' (0 looks along -z, positive turns left),
        'step_m', 'turn_deg' and 'goal_radius_m'. Returns [x, y, z, yaw_rad] at the start and after
        every action.
        """
        agent = self._simulator.get_agent(BODY_AGENT)
        spec, amount = habitat_sim.agent.ActionSpec, habitat_sim.agent.ActuationSpec
        agent.agent_config.action_space = {
            'move_forward': spec('move_forward', amount(request['step_m'])),
            'turn_left': spec('turn_left', amount(request['turn_deg'])),
            'turn_right': spec('turn_right', amount(request['turn_deg'])),
        }
        self._stand(agent, request['start'], request['yaw_rad'])
        follower = self._simulator.make_greedy_follower(
            BODY_AGENT,
            goal_radius=request['goal_radius_m'],
            forward_key='move_forward',
            left_key='turn_left',
            right_key='turn_right',
        )
        actions = follower.find_path(magnum.Vector3(*request['goal']))
        states = [_state(agent)]
        for action in actions:
            if action is not None:
                agent.act(action)
                states.append(_state(agent))
        return states

    def _stand(self, agent: Any, position: list[float], yaw_rad: float) -> None:
        state = habitat_sim.AgentState()
        state.position = position
        state.rotation = habitat_sim.utils.common.quat_from_angle_axis(
            yaw_rad, np.array([0.0, 1.0, 0.0])
        )
        agent.set_state(state)


def _state(agent: Any) -> list[float]:
    ahead = agent.scene_node.transformation.transform_vector(magnum.Vector3(0.0, 0.0, -1.0))
    position = [float(value) for value in agent.state.position]
    return [*position, math.atan2(-ahead[0], -ahead[2])]
