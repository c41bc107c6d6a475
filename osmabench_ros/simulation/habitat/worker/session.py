"""A loaded scene: how it is lit, where its objects are, and its images."""

from __future__ import annotations

import json
import os
from typing import Any

import habitat_sim
import magnum
from habitat_sim.gfx import NO_LIGHT_KEY, LightInfo, LightPositionModel

from .channel import map_images
from .encoded_colors import use_encoded_colors, use_meant_colors

SCENE_SUFFIX = '.scene_instance.json'
FOLDER = 'scene'


class ExactScene:
    """A scene as Habitat-Sim is to load it, `name`, and the handles of its templates."""

    def __init__(self, mediator: Any, scene: str) -> None:
        self.name = scene
        self.objects: list[str] = []
        self.stages: list[str] = []
        self.articulated: list[str] = []
        paths = [
            path
            for path in mediator.get_scene_handles()
            if os.path.basename(path) == scene + SCENE_SUFFIX and os.path.isfile(path)
        ]
        if len(paths) == 1:
            self._read(mediator, paths[0])

    def _read(self, mediator: Any, path: str) -> None:
        with open(path, encoding='utf-8') as file:
            instance = json.load(file)
        stage = instance.get('stage_instance', {})
        objects = instance.get('object_instances', [])
        articulated = instance.get('articulated_object_instances', [])
        self.stages = _choose_exact(mediator.stage_template_manager, [stage])
        self.objects = _choose_exact(mediator.object_template_manager, objects)
        self.articulated = _choose_exact(mediator.ao_template_manager, articulated)
        for entry in articulated:
            if 'initial_joint_pose' in entry:
                entry['initial_joint_pose'] = _make_floats(entry['initial_joint_pose'])
        os.makedirs(FOLDER, exist_ok=True)
        self.name = os.path.abspath(os.path.join(FOLDER, os.path.basename(path)))
        with open(self.name, 'w', encoding='utf-8') as file:
            json.dump(instance, file)


def _choose_exact(manager: Any, entries: list[dict[str, Any]]) -> list[str]:
    """Replace the template names of entries by whole paths, and return those without repeats."""
    found: list[str] = []
    for entry in entries:
        name = entry.get('template_name', '')
        similar = manager.get_template_handles(name) if name else []
        wanted = os.path.basename(name).split('.')[0]
        exact = [handle for handle in similar if os.path.basename(handle).split('.')[0] == wanted]
        exact = exact or similar  # a part of a name will do if only one template has it
        if len(exact) == 1:
            entry['template_name'] = exact[0]
            found += exact
    return sorted(set(found))


def _make_floats(positions: Any) -> Any:
    if isinstance(positions, dict):
        return {key: float(value) for key, value in positions.items()}
    return [float(value) for value in positions]


# Habitat-Sim reads this from its working directory, which is the worker's own.
DEFAULT_PBR_CONFIG = os.path.join('data', 'default.pbr_config.json')

# Physically based shading by only the lights, in linear colours: radiance is albedo times
# irradiance, as the intensities of the lights mean it.
LINEAR_PBR = {
    'enable_direct_lights': True,
    'direct_light_intensity': 3.141592653589793,
    'enable_ibl': False,
    # Any image found under these names would be prefiltered for half a minute.
    'ibl_envmap_filename': 'environment_map_is_switched_off',
    'ibl_blut_filename': 'environment_map_is_switched_off',
    'map_mat_txtr_to_linear': True,
    'map_output_to_srgb': True,
    'use_direct_tonemap': False,
    'use_burley_diffuse': False,
    'gamma': 2.2,
}


def use_linear_pbr(enabled: bool) -> None:
    """Make scenes that are loaded from now on use `LINEAR_PBR`, or Habitat-Sim's own default."""
    if not enabled:
        if os.path.exists(DEFAULT_PBR_CONFIG):
            os.remove(DEFAULT_PBR_CONFIG)
        return
    os.makedirs(os.path.dirname(DEFAULT_PBR_CONFIG), exist_ok=True)
    with open(DEFAULT_PBR_CONFIG, 'w', encoding='utf-8') as file:
        json.dump(LINEAR_PBR, file)


def set_shader(mediator: Any, shader: str) -> None:
    """Make the templates of an unused data set use a shader: flat, phong or pbr.

    'native' leaves each with the data set's shader; 'osma_bench' too, but for those that ask
    for flat shading, on which lights do not act: they get phong.
    """
    if shader == 'native':
        return
    asked_flat = shader == 'osma_bench'
    wanted = 'phong' if asked_flat else shader
    articulated = mediator.ao_template_manager
    for manager in (
        mediator.object_template_manager,
        mediator.stage_template_manager,
        articulated,
    ):
        for handle in manager.get_template_handles():
            template = manager.get_template_by_handle(handle)
            if asked_flat and template.shader_type.name != 'FLAT':
                continue
            if manager is not articulated:
                template.force_flat_shading = wanted == 'flat'
            template.shader_type = wanted
            manager.register_template(template, handle)


# Key of the setup of the lit image; setting lights under NO_LIGHT_KEY ends the process.
LIGHTS = 'osmabench'

# Sensors are drawn agent by agent, so each has an agent: images that a frame does not need are not
# drawn. Pixels of 'object' hold the ids of objects, of 'annotation' the ids of a semantic mesh.
SENSORS = ('depth', 'object', 'annotation', 'color')

# The agent without a sensor, which walks the navigation mesh.
BODY_AGENT = len(SENSORS)


# Textures as they are; like every look, a shader and whether corners are darkened (HBAO).
FLAT = ('flat', False)


class Session:
    """Simulators of one scene, one a look; all but the first are made when they are asked for."""

    def __init__(self, config: dict[str, Any], frame_descriptor: int) -> None:
        self._config = config
        self._images = map_images(frame_descriptor, config['width'], config['height'])
        self._lights: list[Any] = []
        self._moves: dict[int, Any] = {}
        self._initial: dict[int, Any] = {}
        self._textures, self._shaded = FLAT, FLAT
        self.geometry = self._make_simulator(*FLAT, SENSORS)
        self._simulators = {FLAT: self.geometry}
        self._ids = 'annotation' if _list_annotated_objects(self.geometry) else 'object'

    def inventory(self) -> dict[str, Any]:
        """Return the objects in instance and semantic images, by kind, with their ids.

        An articulated object has the ids of its links too.
        """
        rigid = _list_items(self.geometry.get_rigid_object_manager())
        articulated = _list_items(self.geometry.get_articulated_object_manager())
        return {
            'objects': [{'ids': [item.object_id], 'handle': item.handle} for item in rigid],
            'articulated': [
                {'ids': [item.object_id, *sorted(item.link_object_ids)], 'handle': item.handle}
                for item in articulated
            ],
            'annotations': _list_annotated_objects(self.geometry),
        }

    def set_lights(
        self, lights: list[dict[str, Any]], shading: str, occlusion: bool, unlit_occlusion: bool
    ) -> None:
        """Light the lit image from now on; lights are as from `habitat.lights.convert_light`.

        `occlusion` darkens corners of the lit image, `unlit_occlusion` of the unlit one.
        """
        self._shaded = (shading, occlusion)
        self._textures = ('flat', unlit_occlusion)
        self._shine([_make_light(light) for light in lights])

    def _shine(self, infos: list[Any]) -> None:
        # A shader is built for a number of lights; dark ones keep it from being built again.
        infos = infos + [_make_light(DARK)] * (len(self._lights) - len(infos))
        self._lights = infos
        for (shader, _), simulator in self._simulators.items():
            if shader != 'flat':
                simulator.set_light_setup(infos, LIGHTS)

    def render(self, camera: list[list[float]], unlit: bool, lit: bool) -> None:
        """Put depth, ids and the wanted colour images of a camera into the shared memory."""
        plain = unlit and self._textures == FLAT
        seen = _observe(self.geometry, camera, 'depth', self._ids, *(['color'] if plain else []))
        self._images['depth'][:] = seen['depth']
        self._images['ids'][:] = seen[self._ids]
        if unlit:
            if not plain:
                seen = _observe(self._with_look(self._textures), camera, 'color')
            self._images['unlit'][:] = seen['color'][..., :3]
        if lit:
            self._render_lit(camera)

    def render_light(self, camera: list[list[float]], light: dict[str, Any]) -> None:
        """Draw only one light as the lit image; afterwards restore the lights of `set_lights`."""
        lights = self._lights
        self._shine([_make_light(light)])
        self._render_lit(camera)
        self._shine(lights)

    def _render_lit(self, camera: list[list[float]]) -> None:
        seen = _observe(self._with_look(self._shaded), camera, 'color')
        self._images['lit'][:] = seen['color'][..., :3]

    def move(self, object_id: int, motion: list[list[float]]) -> None:
        """Move a rigid object from where the data set has it, by a 4x4 motion, y up."""
        if object_id not in self._initial:
            item = self.geometry.get_rigid_object_manager().get_object_by_id(object_id)
            if item is None:
                raise ValueError(f'object {object_id} is not a rigid object')
            self._initial[object_id] = item.transformation
        self._moves[object_id] = make_matrix(motion)
        for simulator in self._simulators.values():
            self._place(simulator, object_id)

    def close(self) -> None:
        """Free the simulators."""
        for simulator in reversed(list(self._simulators.values())):
            simulator.close()

    def _place(self, simulator: Any, object_id: int) -> None:
        item = simulator.get_rigid_object_manager().get_object_by_id(object_id)
        item.motion_type = habitat_sim.physics.MotionType.KINEMATIC  # static ones do not move
        item.transformation = self._moves[object_id] @ self._initial[object_id]

    def _with_look(self, look: tuple[str, bool]) -> Any:
        if look not in self._simulators:
            made = self._make_simulator(*look, ('color',))
            if look[0] != 'flat':
                made.set_light_setup(self._lights, LIGHTS)
            for object_id in self._moves:
                self._place(made, object_id)
            self._simulators[look] = made
        return self._simulators[look]

    def _make_simulator(self, shader: str, occlusion: bool, sensors: tuple[str, ...]) -> Any:
        config = self._config
        use_linear_pbr(shader in ('flat', 'pbr'))
        backend = habitat_sim.SimulatorConfiguration()
        backend.scene_dataset_config_file = config['dataset']
        backend.scene_id = config['scene']
        backend.gpu_device_id = config['device']
        backend.random_seed = config['seed']
        backend.enable_physics = habitat_sim.built_with_bullet
        backend.enable_hbao = occlusion
        backend.override_scene_light_defaults = True
        # Links of articulated objects are flat only under this key, whatever their template says.
        backend.scene_light_setup = NO_LIGHT_KEY if shader == 'flat' else LIGHTS
        mediator = habitat_sim.metadata.MetadataMediator(backend)
        scene = ExactScene(mediator, config['scene'])
        backend.scene_id = scene.name
        set_shader(mediator, shader)
        if shader == 'flat':
            use_encoded_colors(mediator.object_template_manager, scene.objects)
            use_encoded_colors(mediator.stage_template_manager, scene.stages)
        if shader in ('flat', 'pbr'):
            flat = shader == 'flat'
            use_meant_colors(mediator.ao_template_manager, scene.articulated, flat)
        wanted = [[_make_sensor(name, config)] if name in sensors else [] for name in SENSORS]
        agents = [_make_agent(item) for item in (*wanted, [])]
        return habitat_sim.Simulator(habitat_sim.Configuration(backend, agents, mediator))


def _list_items(manager: Any) -> list[Any]:
    """Return the objects of a manager, sorted by id."""
    items = map(manager.get_object_by_handle, manager.get_object_handles())
    return sorted(items, key=lambda item: int(item.object_id))


def _list_annotated_objects(simulator: Any) -> list[dict[str, Any]]:
    """Return the pixel ids of the objects of a semantic mesh, if the scene has one."""
    if simulator.semantic_scene is None:
        return []
    return [
        {'id': item.semantic_id} for item in simulator.semantic_scene.objects if item is not None
    ]


DARK = {'vector': [0.0, -1.0, 0.0, 0.0], 'color': [0.0, 0.0, 0.0], 'on_camera': False}


def make_matrix(rows: list[list[float]]) -> Any:
    """Return a magnum matrix of rows; magnum itself counts columns."""
    return magnum.Matrix4([list(column) for column in zip(*rows)])  # noqa: B905, Python 3.9


def _make_light(light: dict[str, Any]) -> Any:
    model = LightPositionModel.Camera if light['on_camera'] else LightPositionModel.Global
    return LightInfo(vector=light['vector'], color=light['color'], model=model)


def _observe(simulator: Any, camera: list[list[float]], *names: str) -> dict[str, Any]:
    agents = [SENSORS.index(name) for name in names]
    for agent in agents:
        simulator.get_agent(agent).scene_node.transformation = make_matrix(camera)
    seen = simulator.get_sensor_observations(agent_ids=agents)
    return {name: seen[agent][name] for name, agent in zip(names, agents)}  # noqa: B905, Python 3.9


def _make_agent(sensors: list[Any]) -> Any:
    agent = habitat_sim.agent.AgentConfiguration()
    agent.sensor_specifications = sensors
    return agent


def _make_sensor(name: str, config: dict[str, Any]) -> Any:
    kinds = {'color': habitat_sim.SensorType.COLOR, 'depth': habitat_sim.SensorType.DEPTH}
    sensor = habitat_sim.CameraSensorSpec()
    sensor.uuid = name
    sensor.sensor_type = kinds.get(name, habitat_sim.SensorType.SEMANTIC)
    sensor.sensor_subtype = habitat_sim.SensorSubType.PINHOLE
    sensor.resolution = magnum.Vector2i(config['height'], config['width'])
    sensor.hfov = config['hfov_deg']
    sensor.near = config['near_m']
    sensor.far = config['far_m']
    sensor.position = magnum.Vector3(0.0)  # the agent is put where the camera is
    if name != 'color':
        sensor.channels = 1
    if name == 'object':
        targets = habitat_sim._ext.habitat_sim_bindings.SemanticSensorTarget
        sensor.semantic_target = targets.OBJECT_ID
    return sensor
