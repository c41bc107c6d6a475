"""A `*.scene_dataset_config.json` and the files it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from osmabench_ros.errors import SceneError, choose, suggestion
from osmabench_ros.scenes.asset_files import file_within
from osmabench_ros.scenes.scene_files import read_object

BARE_STAGE = {'up': (0.0, 0.0, 1.0), 'front': (0.0, 1.0, 0.0)}
"""Axes that Habitat-Sim takes a stage to have that is a GLB file and nothing else: MP3D's."""

Described = tuple[dict[str, Any], Path]
"""Attributes, and the folder that paths in them start from."""


def inline_templates(
    cells: Any, files: Mapping[str, Path], read: Callable[[Path | None], Described], where: str
) -> dict[str, Described]:
    """Return by handle the templates that a data set describes in `cells`, not in files."""
    found: dict[str, Described] = {}
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise SceneError(f'{where} must be a list of objects')
    for cell in cells:
        original, changes = str(cell.get('original_file', '')), cell.get('attributes', {})
        key = str(cell.get('template_handle', ''))
        source = None
        if original:
            source = next((k for k, path in files.items() if str(path).endswith(original)), None)
            if source is None:
                raise SceneError(f'{where} changes "{original}", which is not among the paths')
        if not (key or source) or not isinstance(changes, dict):
            raise SceneError(
                f'{where}: an entry needs "attributes", and an "original_file" or a '
                '"template_handle"'
            )
        base, folder = read(None if source is None else files[source])
        # Lights are added to those of the original, light by light.
        lights = {**base.get('lights', {}), **changes.get('lights', {})}
        merged = {**base, **changes, **({'lights': lights} if lights else {})}
        found[key or str(source)] = merged, folder
    return found


SUFFIX = '.scene_dataset_config.json'

NAME_TOKEN = '%%CONFIG_NAME_AS_ASSET_FILENAME%%'  # noqa: S105
"""Stands in default attributes for the name of what they are the defaults of."""

_SECTIONS = {
    'stages': '.stage_config.json',
    'objects': '.object_config.json',
    'articulated_objects': '.ao_config.json',
    'light_setups': '.lighting_config.json',
    'scene_instances': '.scene_instance.json',
}


@dataclass(frozen=True, eq=False)
class HabitatDataset:
    """What a scene data set offers, by the content of its configuration file."""

    path: Path
    data: Mapping[str, Any]
    _found: dict[str, dict[str, Path]] = field(default_factory=dict, init=False)

    @classmethod
    def open(cls, path: Path) -> HabitatDataset:
        """Read a configuration file."""
        return cls(path, read_object(path))

    @property
    def name(self) -> str:
        """Name of the data set, its file's name without the suffix."""
        return self.path.name.removesuffix(SUFFIX)

    @cached_property
    def scenes(self) -> Mapping[str, Path]:
        """Files of scene instances by name."""
        return self._files('scene_instances')

    def defaults(self, section: str) -> dict[str, Any]:
        """Return the default attributes of a section."""
        return dict(self._section(section).get('default_attributes', {}))

    def _section(self, section: str) -> dict[str, Any]:
        return dict(self.data.get(section, {}))

    def scene(self, name: str) -> tuple[str, dict[str, Any], Path]:
        """Return name, content and file of a scene instance or a stage, of '' the first."""
        stages = self._files('stages')
        choices = {**stages, **self.scenes}
        if not choices:
            raise SceneError(f'{self.path}: "scene_instances" and "stages" match no file')
        key = _match(name, choices) if name else min(self.scenes or stages)
        if key is None:
            raise SceneError(f'{self.path} has no scene "{name}". {suggestion(name, choices)}')
        defaults = self.defaults('scene_instances')
        wanted = str(defaults.get('semantic_scene_instance', ''))
        if NAME_TOKEN in wanted:
            wanted = wanted.replace(NAME_TOKEN, key.split('.')[0])
            # What only the defaults name need not be there for every scene.
            there = _last(wanted) in self._descriptors()
            defaults['semantic_scene_instance'] = wanted if there else None
        if key in self.scenes:
            return key, {**defaults, **read_object(self.scenes[key])}, self.scenes[key]
        return key, {**defaults, 'stage_instance': {'template_name': key}}, stages[key]

    def template_name(self, section: str, name: str) -> str:
        """Return the template of a name, else the only path with it; may raise SceneError."""
        choices = {**self._files(section), **dict.fromkeys(self._configured(section), self.path)}
        key = _match(name, choices)
        if key is None:
            raise SceneError(
                f'{self.path}: "{section}" has no template "{name}". '
                f'{suggestion(_last(name), choices)}'
            )
        return key

    def file(self, base: Path, name: str, where: str) -> Path:
        """Return the path of a file relative to `base`; SceneError if none is in the data set."""
        root = self.path.parent.resolve()
        if Path(name).is_relative_to(root):  # absolute, as SceneSmith's packing has it
            base, name = root, str(Path(name).relative_to(root))
        return file_within(self.path.parent, name, base, where)

    def template(self, section: str, name: str) -> Described:
        """Return attributes of a template of a section and the folder its paths start from."""
        key, configured = self.template_name(section, name), self._configured(section)
        if key in configured:
            return configured[key]
        return self._read(section, self._files(section)[key])

    def articulated_config(self, template: str) -> Described:
        """Return attributes of an articulated object, with its 'urdf_filepath', and its folder."""
        config, folder = self.template('articulated_objects', template)
        if 'urdf_filepath' not in config and str(config.get('render_asset', '')).endswith('.urdf'):
            config['urdf_filepath'] = config.pop('render_asset')
        return config, folder

    def light_setup(self, name: str) -> Described | None:
        """Return a light setup, of '' the only one that there is; None if it means no light."""
        configured = self._configured('light_setups')
        files = self._files('light_setups')
        known = {**files, **dict.fromkeys(configured, self.path)}
        key = _last(name)
        if not key and len(known) == 1:
            key = next(iter(known))
        if not key or key in ('no_lights', 'none'):
            return None
        choose(key, known, SceneError, f'{self.path} has no light setup "{name}"')
        if key in configured:
            return configured[key][0], self.path
        return {**self.defaults('light_setups'), **read_object(files[key])}, files[key]

    def semantic_descriptor(self, name: str | None) -> Path | None:
        """Return the descriptor of a name, the only one there is for '', and None for None."""
        if name is None:
            return None
        files = self._descriptors()
        key = _last(name)
        if not key:
            return next(iter(files.values())) if len(files) == 1 else None
        problem = f'{self.path} has no semantic scene descriptor "{name}"'
        return files[choose(key, files, SceneError, problem)]

    def _descriptors(self) -> dict[str, Path]:
        section = self.data.get('semantic_scene_descriptor_instances', {})
        files = {
            key: self.file(self.path.parent, value, str(self.path))
            for key, value in section.items()
            if isinstance(value, str)
        }
        for patterns in section.get('paths', {}).values():
            for path in self._matches(patterns, '.json'):
                files.setdefault(path.name.split('.')[0], path)
        return files

    def _read(self, section: str, path: Path | None) -> Described:
        defaults = self.defaults(section)
        if path is None:
            return defaults, self.path.parent
        if path.suffix == '.json':
            return {**defaults, **read_object(path)}, path.parent
        # As in Habitat-Sim, a configuration beside an asset is read though only that is listed.
        beside = path.with_name(path.name.removesuffix(path.suffix) + _SECTIONS[section])
        own = read_object(beside) if beside.is_file() else {}
        bare = section == 'stages' and path.suffix == '.glb' and not beside.is_file()
        frame = BARE_STAGE if bare and 'default_attributes' not in self._section(section) else {}
        asset = 'urdf_filepath' if path.suffix == '.urdf' else 'render_asset'
        return {**defaults, **frame, asset: path.name, **own}, path.parent

    def _configured(self, section: str) -> dict[str, Described]:
        described = inline_templates(
            self.data.get(section, {}).get('configs', []),
            self._files(section),
            lambda path: self._read(section, path),
            f'{self.path}: "{section}.configs"',
        )
        return {_last(key): found for key, found in described.items()}

    def _files(self, section: str) -> dict[str, Path]:
        if section in self._found:
            return self._found[section]
        suffix = _SECTIONS[section]
        found = self._found[section] = {}
        for kind, patterns in self.data.get(section, {}).get('paths', {}).items():
            wanted = suffix if kind == '.json' else kind
            for path in self._matches(patterns, wanted):
                found.setdefault(path.name.removesuffix(wanted), path)
        return found

    def _matches(self, patterns: list[str] | str, suffix: str) -> list[Path]:
        """Return the files of glob patterns or folders, relative to the configuration."""
        root = self.path.parent
        found: list[Path] = []
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            if '..' in Path(pattern).parts:
                raise SceneError(f'{self.path}: path "{pattern}" leaves the data set')
            try:
                matches = sorted(root.glob(pattern.rstrip('/'))) if pattern else []
            except (NotImplementedError, ValueError) as error:
                raise SceneError(
                    f'{self.path}: path "{pattern}" is no pattern: {error}'
                ) from error
            for path in matches:
                found += sorted(path.iterdir()) if path.is_dir() else [path]
        wanted = [path for path in found if path.name.endswith(suffix) and path.is_file()]
        for path in wanted:
            self.file(root, str(path.relative_to(root)), f'{self.path}: a link')
        return wanted


def _last(name: str) -> str:
    """Return a template's handle without folders and suffixes."""
    last = Path(name).name
    for suffix in (*_SECTIONS.values(), '.semantic_config.json', '.glb', '.urdf', '.json'):
        last = last.removesuffix(suffix)
    return last


def _match(name: str, choices: Mapping[str, Path]) -> str | None:
    """Return the choice of a name: the very one, else the only one whose path contains it."""
    key = _last(name)
    if key in choices:
        return key
    similar = [
        other
        for other, path in choices.items()
        if name and (name in other or name in path.as_posix())
    ]
    return similar[0] if len(similar) == 1 else None
