"""Takes a picture as OSMa-Bench's generator does, with only Habitat-Sim: REQUEST OUT.

The request is a JSON file: dataset, scene, camera (a 4x4 pose, y up), width, height, hfov_deg,
near_m, far_m, hbao, and lights as [x, y, z, red, green, blue], or null where the settings of the
generator leave light to the scene. OUT gets the image as .npy.
"""

import json
import sys

import habitat_sim
import magnum
import numpy as np
from habitat_sim.gfx import LightInfo, LightPositionModel

with open(sys.argv[1], encoding='utf-8') as file:
    request = json.load(file)


def configuration(light_setup):
    backend = habitat_sim.SimulatorConfiguration()
    backend.scene_dataset_config_file, backend.scene_id = request['dataset'], request['scene']
    backend.gpu_device_id, backend.enable_physics = -1, True
    backend.enable_hbao = request['hbao']
    backend.override_scene_light_defaults = request['lights'] is not None
    backend.scene_light_setup = light_setup
    sensor = habitat_sim.CameraSensorSpec()
    sensor.uuid, sensor.sensor_type = 'color', habitat_sim.SensorType.COLOR
    sensor.resolution = [request['height'], request['width']]
    sensor.hfov = request['hfov_deg']
    sensor.near, sensor.far = request['near_m'], request['far_m']
    sensor.position = magnum.Vector3(0.0)
    agent = habitat_sim.agent.AgentConfiguration(sensor_specifications=[sensor])
    return habitat_sim.Configuration(backend, [agent])


simulator = habitat_sim.Simulator(configuration('default'))
if request['lights'] is not None:
    lights = [
        LightInfo(vector=[*light[:3], 1.0], color=light[3:], model=LightPositionModel.Global)
        for light in request['lights']
    ]
    simulator.set_light_setup(lights, 'lights_of_part_0')
    simulator.reconfigure(configuration('lights_of_part_0'))
columns = [list(column) for column in zip(*request['camera'])]  # noqa: B905, Python 3.9
simulator.get_agent(0).scene_node.transformation = magnum.Matrix4(columns)
np.save(sys.argv[2], simulator.get_sensor_observations()['color'][..., :3])
