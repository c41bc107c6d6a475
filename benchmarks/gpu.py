"""What a GPU gives: metrics, renderer and networks on it and on the CPU, in one run.

    python benchmarks/gpu.py --out benchmarks/gpu.json    figures for docs/results.md
    python benchmarks/gpu.py renderer --quick             one part, small sizes, for a look

Parts of the file that were not asked for stay, if they are of the same machine.

Needs a GPU for torch and OpenGL; without one the times of the CPU stand alone. The networks have
the sizes of published ones and random weights: what they cost is shown, never what they find.
Before a ratio is printed the two results are compared; the exit code is 1 if they differ.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from metric_rows import Row
from rich.console import Console
from rich.table import Table

from osmabench_ros.base.device import resolve_device
from osmabench_ros.base.documents import read_json
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Lighting

SIZES = ((640, 480), (1200, 680))
MESA = Path('/usr/share/glvnd/egl_vendor.d/50_mesa.json')
# Of features in 16 bits on the GPU and in 32 on the CPU.
LEAST_COSINE = 0.99

# Share of pixels whose instance both renderers show; they may differ at edges.
LEAST_EQUAL = 0.999


@dataclass(frozen=True)
class Result:
    """Seconds of one piece of work on the CPU and on the GPU, and how alike the results are."""

    part: str
    work: str
    cpu_s: float
    gpu_s: float | None = None
    alike: str = ''
    agrees: bool = True

    @property
    def ratio(self) -> float | None:
        """How many times faster the GPU is."""
        return None if self.gpu_s is None else self.cpu_s / self.gpu_s


def metrics(quick: bool, gpu: bool, _options: argparse.Namespace) -> Iterator[Result]:
    """Count, match, rank and score; each device is checked against the published way."""
    from metrics import CASES, ON_DEVICES, score_scene

    for name in ON_DEVICES:
        # Rows next to several published ways have the same seconds of ours.
        rows = {(name_of(row), row.size): row for row in CASES[name]('cpu', quick)}
        on_gpu = list(CASES[name]('cuda', quick)) if gpu else []
        found = {(row.case, row.size, row.variant): row for row in on_gpu}
        for row in rows.values():
            beside = found.get((row.case, row.size, row.variant))
            yield Result(
                'metrics',
                f'{name_of(row)}, {row.size}',
                row.ours.wall_s,
                beside and beside.ours.wall_s,
                'as the published way' if beside else '',
            )
    size = (200_000, 50_000) if quick else (4_000_000, 1_000_000)
    seconds = [score_scene(*size, device).ours.wall_s for device in devices(gpu)]
    work = f'segmentation and geometry of a scene, {size[0]:,} points against {size[1]:,}'
    yield Result('metrics', work, *seconds)


def name_of(row: Row) -> str:
    """Return what was done, without the published way that it was compared with."""
    return row.case if 'beside' in row.variant else f'{row.case} {row.variant}'.strip()


def devices(gpu: bool) -> tuple[str, ...]:
    """Return the devices that are compared."""
    return ('cpu', 'cuda') if gpu else ('cpu',)


def renderer(quick: bool, gpu: bool, options: argparse.Namespace) -> Iterator[Result]:
    """Render all four images of the apartment by Mesa on the CPU and by the GPU's driver."""
    for width, height in SIZES[: 1 if quick else None]:
        seen = [
            drawn(4 if quick else 60, (width, height), options.mesa if device == 'cpu' else None)
            for device in devices(gpu)
        ]
        for number, light in enumerate(LIGHTS):
            alike, agrees = compared(seen, number) if gpu else ('', True)
            work = f'a frame of {width} x {height}, {light}'
            seconds = [float(item['seconds'][number]) for item in seen]
            yield Result('renderer', work, *seconds, alike=alike, agrees=agrees)


LIGHTS = {'4 lamps with shadows': 4, 'unlit': 0}


def drawn(frames: int, size: tuple[int, int], mesa: Path | None) -> dict[str, Any]:
    """Render in its own process: the driver of OpenGL is chosen when a process starts.

    With a file of Mesa's, EGL finds Mesa alone, and Mesa the CPU.
    """
    software = {'__EGL_VENDOR_LIBRARY_FILENAMES': str(mesa), 'LIBGL_ALWAYS_SOFTWARE': '1'}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / 'frames.npz'
        settings = ['--frames', str(frames), '--size', *map(str, size), '--out', str(file)]
        subprocess.run(
            [sys.executable, __file__, 'draw', *settings],
            env={**os.environ, **(software if mesa else {})},
            check=True,
        )
        return dict(np.load(file))


def compared(seen: list[dict[str, Any]], number: int) -> tuple[str, bool]:
    """Say how alike the frames of two renderers are."""
    names = [str(item['renderer']) for item in seen]
    if names[0] == names[1]:
        raise SystemExit(f'both times "{names[0]}" rendered; is the driver of the GPU installed?')
    one, other = seen
    same = one['instance'][number] == other['instance'][number]
    depth = np.abs(one['depth'][number] - other['depth'][number])[same]
    depth = depth[np.isfinite(depth)]
    color = one['color'][number].astype(float) - other['color'][number]
    within = float((np.abs(color) <= 2).all(-1).mean())
    text = (
        f'instances equal in {same.mean():.3%} of the pixels, there the depth within '
        f'{1e3 * np.quantile(depth, 0.999):.2f} mm in 99.9 %; colours within 2 of 255 in '
        f'{within:.2%}'
    )
    return text, bool(same.mean() >= LEAST_EQUAL and within > 0.99)


def draw(options: argparse.Namespace) -> None:
    """Render frames under each light; of every tenth the images are kept."""
    from rendering import camera, path_poses

    from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator

    scene = load_scene('apartment', seed=0)
    poses = path_poses(scene, options.frames)
    simulator = OpenGLSimulator(scene, camera(tuple(options.size)))
    found: dict[str, list[Any]] = {'seconds': [], 'color': [], 'depth': [], 'instance': []}
    for lamps in LIGHTS.values():
        lights = tuple(light for light in scene.lights if light.lamp)[:lamps]
        light = Lighting(lights, scene.ambient) if lamps else Lighting.unlit()
        simulator.set_lighting(light)
        for pose in poses[:5]:  # shadows of all lamps, shaders, caches
            simulator.render(pose)
        times, images = [], []
        for pose in poses:
            start = time.perf_counter()
            images.append(simulator.render(pose))
            times.append(time.perf_counter() - start)
        found['seconds'].append(statistics.median(times))
        for name, field in (('color', 'color'), ('depth', 'depth_m'), ('instance', 'instance')):
            found[name].append(np.stack([getattr(item, field) for item in images[::10]]))
    kept = {
        'rotations': [item.rotation for item in poses[::10]],
        'translations': [item.translation for item in poses[::10]],
    }
    np.savez(options.out, renderer=simulator.description, **kept, **found)
    simulator.close()


def networks(quick: bool, gpu: bool, _options: argparse.Namespace) -> Iterator[Result]:
    """Run the networks of the mapper `open_vocabulary` on a frame of 640 x 480."""
    import full_size_networks as full

    from osmabench_ros.mappers.open_vocabulary.features import (
        DeviceOptions,
        FeatureOptions,
        NetworkSource,
        Runtime,
        make_encoder,
        mask_features,
    )
    from osmabench_ros.mappers.open_vocabulary.masks import mask_finder

    frame, masks = a_frame(40)
    labels = [item.name for item in load_scene('apartment', seed=0).label_set.classes]
    runtimes = [Runtime(DeviceOptions(device=device)) for device in devices(gpu)]
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        source = NetworkSource(name=full.save_clip(folder / 'clip', labels, quick))
        features: list[Any] = []
        seconds = []
        for runtime in runtimes:
            encoder = make_encoder(source, runtime)

            def encode(encoder: Any = encoder) -> Any:
                return mask_features(frame.color, masks, encoder, FeatureOptions())

            seconds.append(median_of(encode, runtime.device.type))
            features.append(encode())
            del encoder
        alike, agrees = '', True
        if gpu:
            least = float((features[0] * features[1]).sum(1).min())
            alike, agrees = f'least cosine {least:.4f}', least >= LEAST_COSINE
        work = f'features of {len(masks)} masks, CLIP ViT-H/14'
        yield Result('open_vocabulary', work, *seconds, alike=alike, agrees=agrees)
        found = [('masks, Mask2Former Swin-L', full.save_mask2former)]
        if find_spec('torchvision') is not None:
            found.append(('masks of everything, SAM 2.1 Hiera-L', full.save_sam))
        for name, save in found:
            source = NetworkSource(name=save(folder / save.__name__, quick))
            seconds = []
            for runtime in runtimes:
                finder = mask_finder(source, None, (), 0.3, runtime)

                def find(finder: Any = finder) -> Any:
                    return finder.find(frame.color)

                seconds.append(median_of(find, runtime.device.type))
                del finder
            yield Result('open_vocabulary', name, *seconds)


def a_frame(count: int) -> tuple[Frame, Any]:
    """Return a frame of the apartment and masks of its largest instances, cut up to `count`."""
    from rendering import camera

    seen = drawn(60, SIZES[0], None)
    lit = {name: seen[name][0] for name in ('color', 'depth', 'instance')}
    best = max(range(len(lit['instance'])), key=lambda i: len(np.unique(lit['instance'][i])))
    color, depth, instance = (lit[name][best] for name in ('color', 'depth', 'instance'))
    columns = np.arange(instance.shape[1]) // 64
    masks = [
        part
        for found in np.unique(instance)
        for column in np.unique(columns)
        if (part := (instance == found) & (columns == column)).sum() > 100
    ]
    masks.sort(key=lambda mask: -int(mask.sum()))
    pose = Pose(seen['rotations'][best], seen['translations'][best])
    frame = Frame(0, 0, pose, camera(SIZES[0]), color, depth)
    return frame, np.stack(masks[:count])


def median_of(call: Callable[[], object], device: str) -> float:
    """Return the median time of five calls after one that warms up; on the CPU that of one."""
    if device != 'cpu':
        call()
    times = []
    for _ in range(1 if device == 'cpu' else 5):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


PARTS = {'metrics': metrics, 'renderer': renderer, 'open_vocabulary': networks}


def shown(results: list[Result]) -> Table:
    """Lay the results out."""
    table = Table('part', 'work', 'CPU s', 'GPU s', 'ratio', 'alike', title='CPU and GPU')
    for item in results:
        gpu, ratio = (f'{item.gpu_s:.4f}', f'{item.ratio:.1f}') if item.gpu_s else ('', '')
        table.add_row(item.part, item.work, f'{item.cpu_s:.4f}', gpu, ratio, item.alike)
    return table


def main() -> int:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('parts', nargs='*', help=f'of {", ".join(PARTS)}; all by default')
    parser.add_argument('--quick', action='store_true', help='small sizes')
    parser.add_argument('--out', type=Path, help='write the results as JSON')
    parser.add_argument('--mesa', type=Path, default=MESA, help="Mesa's file for EGL")
    parser.add_argument('--frames', type=int, default=60, help=argparse.SUPPRESS)
    parser.add_argument('--size', type=int, nargs=2, default=SIZES[0], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.parts == ['draw']:
        draw(options)
        return 0
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f'no such part: {", ".join(sorted(unknown))}')
    earlier = earlier_results(options.out) if options.out else []
    gpu = resolve_device('auto').type == 'cuda'
    results: list[Result] = []
    for name in options.parts or PARTS:
        for item in PARTS[name](options.quick, gpu, options):
            results.append(item)
            print(f'{item.part}: {item.work}: {item.cpu_s:.4f} s, {item.gpu_s}', flush=True)
    Console(width=200).print(shown(results))
    if options.out:
        done = {item.part for item in results}
        rest = [item for item in earlier if item['part'] not in done]
        found = [*rest, *({**asdict(item), 'ratio': item.ratio} for item in results)]
        # The file is tracked by git: no list of what is ours belongs next to it.
        text = json.dumps({'host': host(), 'results': found}, indent=1)
        options.out.write_text(f'{text}\n', encoding='utf-8')
    return 0 if all(item.agrees for item in results) else 1


def earlier_results(file: Path) -> list[dict[str, Any]]:
    """Return what an earlier file of this machine has; ConfigError if it is another file."""
    if not file.exists():
        return []
    found = read_json(file, ConfigError)
    if not isinstance(found, dict) or found.keys() != {'host', 'results'}:
        raise ConfigError(f'{file} has no results of this script; name another --out')
    return list(found['results']) if found['host'] == host() else []


def host() -> dict[str, Any]:
    """Return the machine and what computed on it."""
    import torch

    from osmabench_ros.runs.host import host_facts

    return {**host_facts(), 'torch': torch.__version__, 'threads': torch.get_num_threads()}


if __name__ == '__main__':
    sys.exit(main())
