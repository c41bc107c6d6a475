"""Any offline mapping method as a mapper: records the frames, runs the method, imports its map."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pydantic import Field

from osmabench_ros.base.files import atomic_directory, write_text
from osmabench_ros.base.owned_folder import Existing, check_folder
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError, MapError, OsmabenchError, RunError, errors_as
from osmabench_ros.geometry.axes import optical_pose_in_link
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.offline.method import (
    Limits,
    OfflineMethod,
    ProcessUsage,
    filled,
    load_method,
    run_limited,
    variables_of,
)
from osmabench_ros.mappers.offline.true_masks import ConceptGraphsDetections
from osmabench_ros.maps.importer import ImportOptions, import_map
from osmabench_ros.maps.semantic_map import MapHeader, Provenance, SemanticMap
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.sequences.layout import SequenceFormat
from osmabench_ros.sequences.writer import SequenceWriter, open_writer

OpenWriter = Callable[[Path, SequenceFormat], SequenceWriter]
"""Opens a writer for a directory that does not exist yet."""


@dataclasses.dataclass(frozen=True)
class OfflineRun:
    """Where and within what limits a method runs; `condition` is for the provenance."""

    work: Path
    limits: Limits
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    scene: str = 'scene'
    condition: str = ''


class OfflineOptions(Strict):
    """Options of an offline method as a mapper of a run.

    Parameters
    ----------
    method : str
        Name in config/methods, or a YAML file.
    work : str
        Folder of the run; must not hold a sequence of this scene yet.
    time_limit_s, memory_limit_gib : float
        What the method may use.
    variables : dict of str to str
        What the method's configuration asks for.
    scene, condition : str
        For the names of folders and the provenance of the map.
    """

    method: str
    work: str
    time_limit_s: float = Field(86_400.0, gt=0)
    memory_limit_gib: float = Field(64.0, gt=0)
    variables: dict[str, str] = Field(default_factory=dict)
    scene: str = Field('scene', pattern='^[A-Za-z0-9][A-Za-z0-9._-]*$')
    condition: str = ''


class OfflineMapperFactory:
    """Makes a method a mapper of runs; `open_writer` makes the writer of its input layout.

    Methods that get the scene's own masks are for a factory that `uses_ground_truth`.
    """

    def __init__(self, open_writer: OpenWriter, *, uses_ground_truth: bool = False) -> None:
        self._open_writer, self.uses_ground_truth = open_writer, uses_ground_truth

    def __call__(
        self, *, label_set: LabelSet, seed: int, options: dict[str, Any]
    ) -> MethodAdapter:
        """Make a mapper; raises ConfigError if an option or the method's file is wrong."""
        parsed = validated(OfflineOptions, options, 'mapper "offline"')
        limits = Limits(parsed.time_limit_s, int(parsed.memory_limit_gib * 2**30))
        run = OfflineRun(
            Path(parsed.work), limits, parsed.variables, parsed.scene, parsed.condition
        )
        method = load_method(parsed.method)
        if bool(method.true_masks) != self.uses_ground_truth:
            right = 'offline_true_masks' if method.true_masks else 'offline'
            raise ConfigError(
                f'method "{method.name}" {"gets" if method.true_masks else "does not read"} the '
                f'masks of the scene; write implementation: {right}'
            )
        return MethodAdapter(method, run, self._open_writer, label_set=label_set, seed=seed)


class MethodAdapter:
    """Makes a mapper of a method that wants the whole sequence first; `seed` is ``${seed}``."""

    def __init__(
        self,
        method: OfflineMethod,
        run: OfflineRun,
        open_writer: OpenWriter,
        *,
        label_set: LabelSet,
        seed: int,
    ) -> None:
        self.uses_ground_truth = bool(method.true_masks)
        self._method, self._run = method, run
        self._label_set, self._seed = label_set, seed
        self._open_writer = open_writer
        self._writer: SequenceWriter | None = None
        self._masks: ConceptGraphsDetections | None = None
        self._intrinsics: Intrinsics | None = None
        self._origin = Pose.identity()
        self._frames, self._stamp_ns = 0, 0
        self._map: SemanticMap | None = None
        self.usage: ProcessUsage | None = None
        self._variables = variables_of(method, run.variables)
        self._resources, self._place = ExitStack(), run.work
        check_folder(run.work, Existing.MERGE)
        if self.sequence.exists():
            raise ConfigError(f'{self.sequence} exists; choose another work folder or remove it')

    @property
    def sequence(self) -> Path:
        """Folder of the recorded sequence."""
        return self._place / 'sequences' / self._run.scene

    @property
    def log(self) -> Path:
        """What the method printed."""
        return self._place / f'{self._method.name}.log'

    def integrate(self, frame: Frame) -> None:
        """Record a frame in the method's layout; raises RunError if the method has run already."""
        if self._map is not None:
            raise RunError(f'{self._method.name} has run; it takes no further frames')
        if self._writer is None:
            # The program works in a scratch folder; what it leaves is listed as ours.
            folder = atomic_directory(self._run.work, Existing.MERGE)
            self._place = self._resources.enter_context(folder)
            self.sequence.parent.mkdir()
            self._writer = self._open_writer(self.sequence, self._method.sequence)
            self._intrinsics = frame.intrinsics
            if self._method.origin == 'first_camera':
                self._origin = frame.camera_pose @ optical_pose_in_link().inverse()
            if self._method.true_masks:
                self._masks = ConceptGraphsDetections(self.sequence, self._label_set, self._seed)
        self._writer.write(frame)
        if self._masks is not None:
            self._masks.write(frame, self._frames)
        self._frames += 1
        self._stamp_ns = max(self._stamp_ns, frame.stamp_ns)

    def semantic_map(self, *, final: bool) -> SemanticMap:
        """Return the method's map, before the end an empty partial one; RunError if it fails."""
        if not final:
            return self._empty()
        if self._map is None:
            self._map = self._finish()
        return self._map

    def _finish(self) -> SemanticMap:
        if self._writer is None:
            raise RunError(f'{self._method.name} got no frame, so there is nothing to map')
        place = str(self._place)
        try:
            self._writer.close()
            return self._mapped()
        except OsmabenchError as error:
            text = str(error).replace(place, str(self._run.work))
            raise type(error)(text) from error
        finally:
            self._resources.close()  # also after an error: the files may show its cause
            self._place = self._run.work

    def _mapped(self) -> SemanticMap:
        values = self._values()
        output = Path(self._filled(self._method.output, values, 'output'))
        (self._place / 'output').mkdir()
        for name, text in self._method.files.items():
            where = f'files.{name}'
            place = self._place / self._filled(name, values, where)
            write_text(place, self._filled(text, values, where))
        self.usage = run_limited(
            [
                [self._filled(argument, values, f'commands[{i}]') for argument in command]
                for i, command in enumerate(self._method.commands)
            ],
            Path(self._filled(self._method.directory, values, 'directory')),
            {
                key: self._filled(text, values, f'environment.{key}')
                for key, text in self._method.environment.items()
            },
            self.log,
            self._run.limits,
        )
        return self._import(output)

    def _import(self, output: Path) -> SemanticMap:
        method, encoder = self._method, self._method.text_encoder
        options = ImportOptions(
            world=method.sequence.world,
            pose=self._origin,
            label_set=self._label_set,
            scene=self._run.scene,
            condition=self._run.condition,
            frames_used=self._frames,
            feature_model=encoder.model if encoder else '',
            feature_pretrained=encoder.pretrained if encoder else '',
            text_comparable=False if method.true_masks else None,
        )
        with errors_as(MapError, f'{method.name} ran, but left no usable map', MapError):
            made = import_map(method.importer, output, options)
        poses, remark = made.trajectory, made.header.remark
        if poses is not None and len(poses) < self._frames:
            found = f'{method.name} found the poses of {len(poses)} of {self._frames} frames'
            remark = f'{found}; {remark}' if remark else found
        header = dataclasses.replace(made.header, stamp_ns=self._stamp_ns, remark=remark)
        return dataclasses.replace(made, header=header)

    def _empty(self) -> SemanticMap:
        provenance = Provenance(
            self._method.name,
            scene=self._run.scene,
            condition=self._run.condition,
            frames_used=self._frames,
        )
        header = MapHeader(provenance, stamp_ns=self._stamp_ns, complete=False)
        return SemanticMap(header, SceneGraph(), label_set=self._label_set)

    def _values(self) -> dict[str, str]:
        camera = self._intrinsics
        assert camera is not None
        numbers = {name: str(value) for name, value in dataclasses.asdict(camera).items()}
        work = self._place.resolve()
        return {
            **self._variables,
            **numbers,
            'pixels': str(camera.width * camera.height),
            'work': str(work),
            'sequence': str(self.sequence.resolve()),
            'dataset': str(self.sequence.parent.resolve()),
            'scene': self._run.scene,
            'output': str(work / 'output'),
            'seed': str(self._seed),
            'frames': str(self._frames),
            'depth_scale': str(self._method.sequence.depth_scale),
        }

    def _filled(self, text: str, values: Mapping[str, str], key: str) -> str:
        return filled(text, values, f'method "{self._method.name}", {key}')


offline = OfflineMapperFactory(open_writer)
"""The mapper "offline" of a configuration; its options are `OfflineOptions`."""

offline_true_masks = OfflineMapperFactory(open_writer, uses_ground_truth=True)
"""The same for methods that get the masks of the scene: "offline_true_masks"."""
