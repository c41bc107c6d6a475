"""The navigation mesh: islands, shortest paths, and a follower that turns and steps."""

from __future__ import annotations

import math
from typing import Any

import habitat_sim
import magnum
import numpy as np

from .session import BODY_AGENT

# An island of at least this share of the largest one's area is a floor; smaller ones are
# furniture.
LARGE_SHARE = 0.25

# A level with less of its island's area is part of a ramp; a smaller island is not a storey.
SMALL_SHARE = 0.05

SAME_FLOOR_M = 0.5

# Places drawn on an island to find its levels.
DRAWN = 400

# Actions of OSMa-Bench's code, in how many parts it does each, and its tries for a point.
OSMA_STEP_M, OSMA_TURN_DEG, OSMA_PARTS, OSMA_TRIES = 0.06, 4.0, 2, 1000


class Walking:
    """Navigation mesh of a scene for one size of robot."""

    def __init__(self, simulator: Any, settings: dict[str, Any]) -> None:
        self._simulator = simulator
        self.finder = simulator.pathfinder
        if settings['mesh_file']:
            if not self.finder.load_nav_mesh(settings['mesh_file']):
                raise ValueError(f'{settings["mesh_file"]} is not a navigation mesh')
            built = True
        elif settings['as_loaded'] and self.finder.is_loaded:
            built = True
        else:
            built = self._compute(settings)
        if not built or not self.finder.is_loaded or self.finder.num_islands == 0:
            raise ValueError(
                f'no floor fits a robot of radius {settings["radius_m"]} m and height '
                f'{settings["height_m"]} m'
                + ('; only the stage counts, or name a navmesh' if settings['as_loaded'] else '')
            )
        self._choose_island(settings['floor_height_m'])

    def _compute(self, settings: dict[str, Any]) -> bool:
        mesh = habitat_sim.NavMeshSettings()
        mesh.set_defaults()
        mesh.agent_radius = settings['radius_m']
        mesh.agent_height = settings['height_m']
        mesh.cell_size = mesh.cell_height = settings['cell_m']
        mesh.include_static_objects = not settings['as_loaded']
        try:
            return bool(self._simulator.recompute_navmesh(self.finder, mesh))
        except Exception:  # Habitat-Sim's own check of a stage without triangles
            return False

    def _choose_island(self, floor_height_m: float | None) -> None:
        """Take the floor at a height, or the lowest one: the largest island may be a roof."""
        areas = [self.finder.island_area(index) for index in range(self.finder.num_islands)]
        least = (LARGE_SHARE if floor_height_m is None else SMALL_SHARE) * max(areas)
        islands = []
        for index, area in enumerate(areas):
            if area >= least:
                islands += [(*level, index) for level in self._find_levels(index)]
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

    def _find_levels(self, island: int) -> list[tuple[float, float]]:
        """Return heights at which an island is level, and the areas there: a storey each."""
        self.finder.seed(0)
        drawn = [
            float(self.finder.get_random_navigable_point(island_index=island)[1])
            for _ in range(DRAWN)
        ]
        cell = self.finder.nav_mesh_settings.cell_size
        cells, counts = np.unique(
            np.round(np.array([y for y in drawn if not math.isnan(y)]) / cell), return_counts=True
        )
        vertices = np.array([vertex[1] for vertex in self.finder.build_navmesh_vertices(island)])
        area = self.finder.island_area(island)
        found: list[tuple[float, float]] = []
        # The most common heights first; heights within a step of one belong to it.
        for number in np.argsort(-counts, kind='stable'):
            height = float(vertices[np.argmin(np.abs(vertices - cells[number] * cell))])
            share = counts[np.abs(cells - cells[number]) * cell < SAME_FLOOR_M].sum() / DRAWN
            if share >= SMALL_SHARE and all(abs(height - y) >= SAME_FLOOR_M for y, _ in found):
                found.append((height, float(share * area)))
        return found

    def draw_points(self, count: int, seed: int) -> list[list[float]]:
        """Return navigable positions, drawn uniformly."""
        self.finder.seed(seed)
        return [
            list(self.finder.get_random_navigable_point(island_index=self.island))
            for _ in range(count)
        ]

    def snapped(self, point: list[float]) -> list[float] | None:
        """Return the nearest navigable position at most a cell away, or None."""
        found = self.finder.snap_point(magnum.Vector3(*point), island_index=self.island)
        values = [float(value) for value in found]
        gap = ((values[0] - point[0]) ** 2 + (values[2] - point[2]) ** 2) ** 0.5
        if not gap <= self.finder.nav_mesh_settings.cell_size:  # not a number: nothing is near
            return None
        return values

    def find_shortest_path(self, start: list[float], goal: list[float]) -> dict[str, Any]:
        """Return geodesic distance and corners of the shortest way; None and [] without one."""
        path = habitat_sim.ShortestPath()
        path.requested_start, path.requested_end = start, goal
        if not self.finder.find_path(path):
            return {'distance_m': None, 'points': []}
        points = [[float(v) for v in point] for point in path.points]
        return {'distance_m': float(path.geodesic_distance), 'points': points}

    def follow(
        self,
        start: list[float],
        goal: list[float],
        yaw_rad: float,
        step_m: float,
        turn_deg: float,
        goal_radius_m: float,
    ) -> list[list[float]]:
        """Drive a robot that can only step ahead and turn in place to a goal.

        A `yaw_rad` of 0 looks along -z, a positive one turns left. Returns [x, y, z, yaw_rad] at
        the start and after every action.
        """
        agent = self._prepare_agent(step_m, turn_deg)
        self._place_agent(agent, start, yaw_rad)
        actions = self._make_follower(goal_radius_m).find_path(magnum.Vector3(*goal))
        states = [_read_state(agent)]
        for action in actions:
            if action is not None:
                agent.act(action)
                states.append(_read_state(agent))
        return states

    def scenario(self, goals: int, seed: int) -> dict[str, Any]:
        """Draw goals and drive to them as OSMa-Bench's code does.

        Returns 'states', [x, y, z, yaw_rad] at the start and after every frame's part of an
        action, and 'goals', the number of the goal that each part led to. Goals are on all
        islands; those without a way are left out.
        """
        agent = self._prepare_agent(OSMA_STEP_M, OSMA_TURN_DEG)
        self.finder.seed(seed)
        start, *points = (self._draw_point() for _ in range(goals + 1))
        self._place_agent(agent, start, 0.0)
        states = [_read_state(agent)]
        numbers = []
        for number, point in enumerate(points):
            follower = self._make_follower(None)
            try:
                follower.find_path(point)
                while (action := follower.next_action_along(point)) is not None:
                    whole = agent.agent_config.action_space[action].actuation.amount
                    part = habitat_sim.agent.ActuationSpec(whole / OSMA_PARTS)
                    for _ in range(OSMA_PARTS):
                        agent.controls(agent.scene_node, action, part)
                        states.append(_read_state(agent))
                        numbers.append(number)
            except habitat_sim.errors.GreedyFollowerError:
                continue  # there is no way, or the follower is stuck: on to the next goal
        return {'states': states, 'goals': numbers}

    def _draw_point(self) -> Any:
        while True:
            point = self.finder.get_random_navigable_point(max_tries=OSMA_TRIES)
            if not np.isnan(point).any():
                return point

    def _prepare_agent(self, step_m: float, turn_deg: float) -> Any:
        """Return the body, which knows three actions from now on."""
        agent = self._simulator.get_agent(BODY_AGENT)
        amounts = {'move_forward': step_m, 'turn_left': turn_deg, 'turn_right': turn_deg}
        agent.agent_config.action_space = {
            name: habitat_sim.agent.ActionSpec(name, habitat_sim.agent.ActuationSpec(amount))
            for name, amount in amounts.items()
        }
        return agent

    def _make_follower(self, goal_radius_m: float | None) -> Any:
        """Return a follower of the body; the goal radius is 0.75 steps by default."""
        return self._simulator.make_greedy_follower(
            BODY_AGENT,
            goal_radius=goal_radius_m,
            forward_key='move_forward',
            left_key='turn_left',
            right_key='turn_right',
        )

    def _place_agent(self, agent: Any, position: list[float], yaw_rad: float) -> None:
        state = habitat_sim.AgentState()
        state.position = position
        state.rotation = habitat_sim.utils.common.quat_from_angle_axis(
            yaw_rad, np.array([0.0, 1.0, 0.0])
        )
        agent.set_state(state)


def _read_state(agent: Any) -> list[float]:
    ahead = agent.scene_node.transformation.transform_vector(magnum.Vector3(0.0, 0.0, -1.0))
    position = [float(value) for value in agent.state.position]
    return [*position, math.atan2(-ahead[0], -ahead[2])]
