"""Drives as OSMa-Bench's generator does, with only Habitat-Sim: DATASET SEED GOALS.

Prints the poses after each half of an action as [x, y, z, yaw], y up, with the number of the goal.
"""

import json
import math
import sys

import habitat_sim
import magnum
import numpy as np

dataset, seed, goals = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def half(name):
    whole = habitat_sim.registry.get_move_fn(name)

    class Half(habitat_sim.SceneNodeControl):
        def __call__(self, node, spec):
            whole(node, habitat_sim.agent.ActuationSpec(spec.amount / 2))

    habitat_sim.registry.register_move_fn(Half, name=f'{name}_half', body_action=True)


actions = {'move_forward': 0.06, 'turn_left': 4.0, 'turn_right': 4.0}
agent = habitat_sim.agent.AgentConfiguration(sensor_specifications=[], action_space={})
for name, amount in actions.items():
    half(name)
    for key in (name, f'{name}_half'):
        spec = habitat_sim.agent.ActuationSpec(amount)
        agent.action_space[key] = habitat_sim.agent.ActionSpec(key, spec)
backend = habitat_sim.SimulatorConfiguration()
backend.scene_dataset_config_file, backend.scene_id = dataset, 'flat'
backend.create_renderer, backend.enable_physics = False, True
simulator = habitat_sim.Simulator(habitat_sim.Configuration(backend, [agent]))
settings = habitat_sim.NavMeshSettings()
settings.set_defaults()
settings.agent_radius, settings.agent_height = 0.25, 1.2
settings.cell_size = settings.cell_height = 0.05
settings.include_static_objects = False
simulator.recompute_navmesh(simulator.pathfinder, settings)
simulator.pathfinder.seed(seed)
points = [simulator.pathfinder.get_random_navigable_point(1000) for _ in range(goals + 1)]
state = habitat_sim.AgentState()
state.position = points[0]
simulator.initialize_agent(0, state)
body, driven = simulator.get_agent(0), []


def note(number):
    ahead = body.scene_node.transformation.transform_vector(magnum.Vector3(0, 0, -1))
    yaw = math.atan2(-ahead[0], -ahead[2])
    driven.append([number, *np.array(body.state.position, float).tolist(), yaw])


note(0)
for number, goal in enumerate(points[1:]):
    follower = simulator.make_greedy_follower(0)
    try:
        follower.find_path(goal)
        while (action := follower.next_action_along(goal)) is not None:
            for _ in range(2):
                simulator.step(f'{action}_half')
                note(number)
    except habitat_sim.errors.GreedyFollowerError:
        continue
print(json.dumps(driven))
