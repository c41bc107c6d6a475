"""Frames a second and quality of the simulators, what bounds them, and whether memory is flat.

    python benchmarks/rendering.py
    python benchmarks/rendering.py --habitat-python PYTHON --habitat-scene FILE

The second also compares with Habitat-Sim on a `*.scene_dataset_config.json`, by default the small
house in `shared/` next to the repository. Frames are those of a path through the scene at 2 frames
a second, so that every one looks elsewhere. Run it on an idle machine; the load before and after
is printed.
"""

import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import psutil
import typer
from measuring import console, empty_table
from scipy import ndimage

from osmabench_ros.base.images import decode_srgb, encode_srgb
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Lighting, Scene
from osmabench_ros.simulation.conditions import compute_lighting, load_condition
from osmabench_ros.simulation.habitat.simulator import PYTHON_VARIABLE
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator, Rendering
from osmabench_ros.simulation.robot_path import CameraMount, Motion, plan_path, sample_trajectory
from osmabench_ros.simulation.schedule import Moment
from osmabench_ros.simulation.simulator import Simulator, make_simulator
from osmabench_ros.simulation.walkable_grid import WalkableGrid

SIZES = ((640, 480), (1200, 680))
WARM_UP = 5
ROUNDS = 3
HOUSE = Path(__file__).parents[2] / 'shared/scenes/small_house/house.scene_dataset_config.json'


def path_poses(scene: Scene, count: int) -> list[Pose]:
    """Return camera poses along a path, as many as asked for."""
    navigation = WalkableGrid.of_scene(scene, radius_m=0.2, height_m=1.5)
    path = plan_path(navigation, goals=5, seed=0)
    poses = sample_trajectory(path, Motion(), 2.0, CameraMount()).camera_poses
    return [poses[i % len(poses)] for i in range(count)]


def lightings(scene: Scene, lamps: int) -> dict[str, Lighting]:
    """Return the light of each row of the table."""
    lights = tuple(light for light in scene.lights if light.lamp)[:lamps]
    ambient = scene.ambient
    return {
        f'{len(lights)} lights with shadows': Lighting(lights, ambient),
        f'{len(lights)} lights without shadows': Lighting(lights, ambient, shadows=False),
        'all lights of the scene': Lighting(scene.lights, ambient),
        'unlit': Lighting.unlit(),
    }


def frames_per_second(simulator: Simulator, poses: Sequence[Pose]) -> tuple[float, float]:
    """Return frames per second by the wall clock, and milliseconds of processor time per frame.

    The processor time is that of this process and, where there is one, of the worker.
    """
    for pose in poses[:WARM_UP]:  # shadows of all lights, shaders, caches
        simulator.render(pose)
    wall, processor = time.perf_counter(), processor_s(simulator)
    for pose in poses:
        simulator.render(pose)
    wall, processor = time.perf_counter() - wall, processor_s(simulator) - processor
    return len(poses) / wall, 1e3 * processor / len(poses)


def processes(simulator: Simulator) -> list[psutil.Process]:
    """Return the processes that render."""
    worker = getattr(simulator, 'worker_pid', None)
    return [psutil.Process(), *([psutil.Process(worker)] if worker else [])]


def processor_s(simulator: Simulator) -> float:
    """Return the processor time used so far, seconds."""
    times = [process.cpu_times() for process in processes(simulator)]
    return float(sum(item.user + item.system for item in times))


def memory_mib(simulator: Simulator) -> float:
    """Return the resident memory of all that renders."""
    return float(sum(process.memory_info().rss for process in processes(simulator)) / 2**20)


def camera(size: tuple[int, int]) -> Intrinsics:
    """Return the benchmark's camera, 90 degrees wide."""
    return Intrinsics.from_hfov(*size, math.pi / 2)


def print_speed(scene: Scene, poses: Sequence[Pose], lamps: int) -> None:
    """Print the speed of the embedded simulator: every frame has all four images."""
    title = 'embedded simulator: all four images, which come from one pass'
    table = empty_table(title, ('size', 'light'), ('frames/s', 'processor ms/frame'))
    for size in SIZES:
        simulator = OpenGLSimulator(scene, camera(size))
        for name, lighting in lightings(scene, lamps).items():
            simulator.set_lighting(lighting)
            rate, processor = frames_per_second(simulator, poses)
            table.add_row('{} x {}'.format(*size), name, f'{rate:.1f}', f'{processor:.0f}')
        simulator.close()
    console.print(table)


def print_renderings(scene: Scene, poses: Sequence[Pose], lamps: int) -> None:
    """Print speed and quality of each rendering, in turns, under lamps with shadows.

    The quality is the PSNR of pixels within 2 of a border of instances, against the same rendering
    at sixteen times as many pixels, whose colours are averaged in linear light.
    """
    lighting = next(iter(lightings(scene, lamps).values()))
    rates: dict[Rendering, list[tuple[float, float]]] = {item: [] for item in Rendering}
    both = {item: OpenGLSimulator(scene, camera(SIZES[0]), rendering=item) for item in Rendering}
    for item in (*Rendering,) * ROUNDS:
        both[item].set_lighting(lighting)
        rates[item].append(frames_per_second(both[item], poses))
    for simulator in both.values():
        simulator.close()
    title = f'renderings, {lamps} lights with shadows, 640 x 480'
    figures = ('frames/s', 'processor ms/frame', 'of compat', 'PSNR at edges, dB')
    table = empty_table(title, ('rendering',), figures)
    medians = {key: np.median(found, axis=0) for key, found in rates.items()}
    for key, (rate, cost) in medians.items():
        ratio = cost / medians[Rendering.COMPAT][1]
        quality = edge_psnr_db(scene, poses[:: max(1, len(poses) // 3)], lighting, key)
        cells = (f'{rate:.1f}', f'{cost:.0f}', f'{ratio:.2f}', f'{quality:.1f}')
        table.add_row(key.value, *cells)
    console.print(table)


def edge_psnr_db(
    scene: Scene, poses: Sequence[Pose], lighting: Lighting, rendering: Rendering
) -> float:
    """Return the PSNR at borders of instances against a picture of four times the width."""
    size, finer = (320, 240), 4
    small = camera(size)
    large = Intrinsics(
        *(size[0] * finer, size[1] * finer, small.fx * finer, small.fy * finer),
        *((center + 0.5) * finer - 0.5 for center in (small.cx, small.cy)),
    )
    found = []
    for intrinsics in (small, large):
        simulator = OpenGLSimulator(scene, intrinsics, rendering=rendering)
        simulator.set_lighting(lighting)
        found.append([simulator.render(pose) for pose in poses])
        simulator.close()
    errors = []
    for seen, fine in zip(*found, strict=True):
        cells = fine.color.reshape(size[1], finer, size[0], finer, 3)
        mean = encode_srgb(decode_srgb(cells / 255.0).mean(axis=(1, 3)))
        near = seen.instance
        border = ndimage.maximum_filter(near, 5) != ndimage.minimum_filter(near, 5)
        errors.append((seen.color / 255.0 - mean)[border].ravel() ** 2)
    return float(-10 * np.log10(np.concatenate(errors).mean()))


def print_saturation(seeds: int) -> None:
    """Print the share of pixels with a channel at its largest value, over several apartments."""
    names = ('baseline', 'camera')
    table = empty_table(f'saturated pixels, {seeds} apartments', ('rendering',), names)
    shares: dict[tuple[Rendering, str], list[float]] = {}
    for seed in range(seeds):
        scene = load_scene('apartment', seed=seed)
        poses = path_poses(scene, 40)[::4]
        for item in (Rendering.COMPAT, Rendering.STANDARD):
            simulator = OpenGLSimulator(scene, camera((320, 240)), rendering=item)
            for name in names:
                moment = Moment(0, 0.0, 0.0)
                simulator.set_lighting(compute_lighting(load_condition(name), scene, moment))
                seen = [(simulator.render(pose).color == 255).any(axis=-1) for pose in poses]
                shares.setdefault((item, name), []).append(float(np.mean(seen)))
            simulator.close()
    for item in (Rendering.COMPAT, Rendering.STANDARD):
        found = [shares[item, name] for name in names]
        cells = (f'{np.mean(each):.2%} (at most {max(each):.2%})' for each in found)
        table.add_row(item.value, *cells)
    console.print(table)


def mean_profile(
    scene: Scene, size: tuple[int, int], lighting: Lighting, poses: Sequence[Pose]
) -> dict[str, float]:
    """Return the mean cost of each step of a frame."""
    simulator = OpenGLSimulator(scene, camera(size))
    simulator.set_lighting(lighting)
    simulator.render(poses[0])
    steps = [simulator.profile(pose) for pose in poses]
    simulator.close()
    return {key: float(np.mean([step[key] for step in steps])) for key in steps[0]}


def print_bounds(scene: Scene, poses: Sequence[Pose], lamps: int) -> None:
    """Print where the time goes, by taking away pixels and shadows."""
    lighting = next(iter(lightings(scene, lamps).values()))
    full = mean_profile(scene, (640, 480), lighting, poses)
    few_pixels = mean_profile(scene, (80, 60), lighting, poses)
    shadowless = Lighting(lighting.lights, lighting.ambient, shadows=False)
    plain = mean_profile(scene, (640, 480), shadowless, poses)
    simulator = OpenGLSimulator(scene, camera((640, 480)))
    simulator.set_lighting(lighting)
    simulator.render(poses[0])
    first = time.perf_counter()
    for pose in poses[:5]:
        simulator.set_lighting(Lighting(lighting.lights, 0.0))
        simulator.move_objects({scene.objects[0].instance_id: scene.objects[0].pose})
        simulator.render(pose)
    anew = (time.perf_counter() - first) / 5
    simulator.close()
    frame = full['geometry'] + full['lighting'] + full['read_back']
    title = 'what bounds a frame of 640 x 480 with shadows'
    table = empty_table(title, ('part',), ('ms', 'share'))
    for name, seconds in (
        ('triangles (geometry at 80 x 60)', few_pixels['geometry']),
        ('fragments (the rest of geometry)', full['geometry'] - few_pixels['geometry']),
        ('light without shadows', plain['lighting']),
        ('looking shadows up', full['lighting'] - plain['lighting']),
        ('read-back', full['read_back']),
        ('classes and instances from ids: what RGB-D alone saves', lookup_s(scene)),
        ('a frame', frame),
        ('a frame if a wall moved: all its shadows anew', anew),
    ):
        table.add_row(name, f'{1e3 * seconds:.1f}', f'{seconds / frame:.0%}')
    console.print(table)
    total = sum(len(mesh.faces) for item in scene.objects for mesh in item.meshes)
    console.print(f'{full["triangles"]:.0f} of {total} triangles drawn a frame after culling')


def lookup_s(scene: Scene) -> float:
    """Return what it takes to look up classes and instances of the pixels of a frame."""
    classes = np.array([item.class_id for item in scene.objects], np.uint16)
    instances = np.array([item.instance_id for item in scene.objects], np.int32)
    number = np.random.default_rng(0).integers(0, len(classes), (480, 640))
    start = time.perf_counter()
    for _ in range(20):
        classes[number], instances[number]
    return (time.perf_counter() - start) / 20


def print_memory(
    name: str, options: dict[str, str], scene: Scene, poses: Sequence[Pose], frames: int
) -> None:
    """Print how memory grows over many frames under changing light."""
    simulator = make_simulator(name, scene, camera((640, 480)), options)
    used = []
    for i in range(frames):
        lights = tuple(light for j, light in enumerate(scene.lights) if (i // 7 + j) % 3)
        simulator.set_lighting(Lighting(lights, scene.ambient))
        simulator.render(poses[i % len(poses)])
        used.append(memory_mib(simulator))
    simulator.close()
    settled, growth = used[frames // 10], used[-1] - used[frames // 10]
    console.print(
        f'memory of {name} over {frames} frames: {settled:.0f} MiB after a tenth, '
        f'{used[-1]:.0f} MiB at the end ({growth:+.1f}), '
        f'{psutil.Process().memory_info().rss / 2**20:.0f} MiB of this process after close'
    )


def print_habitat(
    scene: Scene, poses: Sequence[Pose], lamps: int, options: dict[str, str]
) -> None:
    """Print the ratio to Habitat-Sim under the same lights, none of which casts shadows there."""
    both = {
        'habitat': make_simulator('habitat', scene, camera((640, 480)), options),
        'opengl': make_simulator('opengl', scene, camera((640, 480)), {}),
    }
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for light, lighting in lightings(scene, lamps).items():
        # In turns, so that whatever else the machine does meets both.
        for name in ('habitat', 'opengl') * ROUNDS:
            both[name].set_lighting(lighting)
            found.setdefault((name, light), []).append(frames_per_second(both[name], poses))
    for simulator in both.values():
        console.print(simulator.description)
        simulator.close()
    rates = {key: float(np.median([rate for rate, _ in each])) for key, each in found.items()}
    costs = {key: float(np.median([cost for _, cost in each])) for key, each in found.items()}
    title = f'{scene.dataset}/{scene.name}, 640 x 480, all four images'
    figures = ('frames/s', 'habitat-sim', 'ratio', 'processor ms', 'habitat-sim', 'ratio')
    table = empty_table(title, ('light',), figures)
    for light in lightings(scene, lamps):
        ours, theirs = rates['opengl', light], rates['habitat', light]
        cost, other = costs['opengl', light], costs['habitat', light]
        cells = (f'{ours:.1f}', f'{theirs:.1f}', f'{ours / theirs:.2f}')
        table.add_row(light, *cells, f'{cost:.0f}', f'{other:.0f}', f'{other / cost:.2f}')
    console.print(table)


def main(
    reference: Annotated[str, typer.Option('--scene')] = 'apartment',
    seed: int = 0,
    frames: int = 60,
    lamps: int = 4,
    seeds: Annotated[int, typer.Option(help='apartments for saturated pixels')] = 10,
    memory_frames: Annotated[int, typer.Option(help='0 leaves it out')] = 2000,
    habitat_python: Annotated[
        Path | None, typer.Option(exists=True, envvar=PYTHON_VARIABLE)
    ] = None,
    habitat_scene: Path = HOUSE,
) -> None:
    """Run the benchmark."""
    if habitat_python and not habitat_scene.exists():
        raise typer.BadParameter(f'--habitat-scene: {habitat_scene} does not exist')
    scene = load_scene(reference, seed=seed)
    poses = path_poses(scene, frames)
    simulator = OpenGLSimulator(scene, camera((64, 48)))
    console.print(f'{scene.dataset}/{scene.name}, {simulator.description}, {os.cpu_count()} cores')
    simulator.close()
    console.print(f'load before: {os.getloadavg()[0]:.1f}')
    print_speed(scene, poses, lamps)
    print_renderings(scene, poses, lamps)
    if seeds:
        print_saturation(seeds)
    print_bounds(scene, poses, lamps)
    if memory_frames:
        print_memory('opengl', {}, scene, poses, memory_frames)
    if habitat_python:
        house = load_scene(str(habitat_scene))
        chosen = {'habitat_python': str(habitat_python)}
        poses = path_poses(house, frames)
        print_habitat(house, poses, lamps, chosen)
        if memory_frames:
            print_memory('habitat', chosen, house, poses, memory_frames)
    console.print(f'load after: {os.getloadavg()[0]:.1f}')


if __name__ == '__main__':
    typer.run(main)
