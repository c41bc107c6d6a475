"""Articulated objects (URDF) in the pose that a scene gives to their joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.documents import read_xml
from osmabench_ros.errors import SceneError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.asset_files import file_within, pose_from_rpy, vector
from osmabench_ros.scenes.assets import linearly_mapped, load_meshes, moved
from osmabench_ros.scenes.primitives import box, cylinder, sphere
from osmabench_ros.scenes.scene import Material, Mesh

MOVING = ('revolute', 'continuous', 'prismatic')

URDF_ORDER = 'urdf_order'
"""Value of `link_order` under which links count in the order of the file."""


def read_joint_positions(
    root: Element,
    given: Mapping[str, float] | Sequence[float],
    where: str,
    link_order: str = '',
) -> dict[str, float]:
    """Return positions by joint, radians or metres, from an `initial_joint_pose`.

    Habitat-Sim gives values, an object's by the order of its keys, to the moving joints link by
    link (in `URDF_ORDER`, or parents first and siblings by name); the rest is at 0. Raises
    SceneError for values that are not numbers or too many, and for keys that are joints in another
    order.
    """
    moving = list_moving_joints(root, link_order)
    keys = sorted(given) if isinstance(given, Mapping) else []
    if set(keys) & set(moving) and keys != moving[: len(keys)]:
        raise SceneError(
            f'{where}: "initial_joint_pose" names joints, but Habitat-Sim goes by the order of '
            f'the links; give a list for {", ".join(moving)}'
        )
    values = [given[key] for key in keys] if isinstance(given, Mapping) else list(given)
    if len(values) > len(moving):
        raise SceneError(
            f'{where}: "initial_joint_pose" has {len(values)} values, '
            f'the URDF {len(moving)} moving joints'
        )
    try:
        return {name: float(value) for name, value in zip(moving, values, strict=False)}
    except (TypeError, ValueError):
        raise SceneError(f'{where}: "initial_joint_pose" must hold numbers') from None


def list_moving_joints(root: Element, link_order: str = '') -> list[str]:
    """Return the names of the joints that can move, in the order of Habitat-Sim's links."""
    joints = root.findall('joint')
    links = [link.get('name') for link in root.findall('link')]
    if link_order == URDF_ORDER:
        place = {link: number for number, link in reversed(list(enumerate(links)))}
        ordered = sorted(joints, key=lambda joint: place.get(_end(joint, 'child'), len(links)))
    else:
        children = {_end(joint, 'child') for joint in joints}
        ordered = []
        for base in links:
            if base not in children:
                _descend(base, joints, ordered)
    return [joint.get('name', '') for joint in ordered if joint.get('type') in MOVING]


def _descend(link: str | None, joints: list[Element], ordered: list[Element]) -> None:
    """Append the joints below a link, each before those below its child."""
    for joint in sorted(joints, key=lambda joint: joint.get('name', '')):
        if _end(joint, 'parent') == link and joint not in ordered:
            ordered.append(joint)
            _descend(_end(joint, 'child'), joints, ordered)


def _end(joint: Element, key: str) -> str | None:
    element = joint.find(key)
    return None if element is None else element.get('link')


Joints = Mapping[str, float] | Sequence[float]


def load_urdf(
    path: Path, joints: Joints, where: str, *, root: Path, link_order: str = '', scale: float = 1.0
) -> tuple[Mesh, ...]:
    """Read the visual meshes of a URDF, in the inertial frame of its root link, axes as in it.

    Its meshes are within `root`; for `joints` and `link_order` see `read_joint_positions`. `scale`
    is the factor by which the caller multiplies: Habitat-Sim scales links, not strokes, so that
    prismatic joints move by that much less here.
    """
    tree = read_xml(path, SceneError)
    positions = read_joint_positions(tree, joints, where, link_order)
    poses = _link_poses(tree, positions, where, scale)
    known = {item.get('name'): _material(item, where) for item in tree.iterfind('material')}
    from_inertial = _inertial_frame(tree, where).inverse()
    meshes: list[Mesh] = []
    for link in tree.findall('link'):
        pose = from_inertial @ poses.get(link.get('name', ''), Pose.identity())
        for visual in link.findall('visual'):
            offset = pose @ _origin(visual, where)
            parts = [moved(mesh, offset) for mesh in _geometry(visual, path, root, where)]
            given = visual.find('material')
            material = None
            if given is not None:
                material = _material(given, where) or known.get(given.get('name'))
            meshes += parts if material is None else [replace(p, material=material) for p in parts]
    if not meshes:
        raise SceneError(f'{where}: {path} has no visual meshes')
    return tuple(meshes)


def _link_poses(
    root: Element, positions: Mapping[str, float], where: str, scale: float
) -> dict[str, Pose]:
    parents: dict[str, tuple[str, Pose]] = {}
    for joint in root.findall('joint'):
        parent, child = (_attribute(joint.find(key), 'link', where) for key in ('parent', 'child'))
        name = joint.get('name', '')
        local = _origin(joint, where) @ _motion(joint, positions.get(name, 0.0), where, scale)
        parents[child] = parent, local
    poses = {}
    for link in parents:
        pose, above, seen = Pose.identity(), link, {link}
        while above in parents:
            above, local = parents[above]
            pose = local @ pose
            if above in seen:
                raise SceneError(f'{where}: the joints of link "{link}" form a loop')
            seen.add(above)
        poses[link] = pose
    return poses


def _inertial_frame(root: Element, where: str) -> Pose:
    """Return the inertial frame of the link without a parent, in that link."""
    children = {child.get('link') for child in root.iterfind('joint/child')}
    for link in root.findall('link'):
        inertial = link.find('inertial')
        if link.get('name') not in children and inertial is not None:
            return _origin(inertial, where)
    return Pose.identity()


def _motion(joint: Element, position: float, where: str, scale: float) -> Pose:
    from scipy.spatial.transform import Rotation

    if joint.get('type') not in MOVING or position == 0:
        return Pose.identity()
    axis = _vector(joint.find('axis'), 'xyz', (1.0, 0.0, 0.0), where)
    axis = axis / max(float(np.linalg.norm(axis)), 1e-12)
    if joint.get('type') == 'prismatic':
        return Pose(np.eye(3), position / scale * axis)
    return Pose(Rotation.from_rotvec(position * axis).as_matrix(), np.zeros(3))


def _geometry(visual: Element, path: Path, root: Path, where: str) -> tuple[Mesh, ...]:
    geometry = visual.find('geometry')
    for item in () if geometry is None else geometry:
        if item.tag == 'mesh':
            file = _attribute(item, 'filename', where).removeprefix('package://')
            scale = _vector(item, 'scale', (1.0, 1.0, 1.0), where)
            meshes = load_meshes(file_within(root, file, path.parent, where))
            return tuple(linearly_mapped(mesh, np.diag(scale)) for mesh in meshes)
        if item.tag == 'box':
            return (box(_vector(item, 'size', (1.0, 1.0, 1.0), where)),)
        radius = float(_vector(item, 'radius', (0.5,), where)[0])
        if item.tag == 'sphere':
            return (sphere(radius),)
        if item.tag == 'cylinder':
            return (cylinder(radius, float(_vector(item, 'length', (1.0,), where)[0])),)
    return ()


def _material(element: Element, where: str) -> Material | None:
    """Return the plain colour that replaces the look of a mesh, None without one."""
    color = element.find('color')
    if color is None:
        return None
    red, green, blue, _ = _vector(color, 'rgba', (1.0, 1.0, 1.0, 1.0), where).tolist()
    return Material((red, green, blue))


def _origin(element: Element, where: str) -> Pose:
    origin = element.find('origin')
    zero = (0.0, 0.0, 0.0)
    return pose_from_rpy(_vector(origin, 'xyz', zero, where), _vector(origin, 'rpy', zero, where))


def _attribute(element: Element | None, key: str, where: str) -> str:
    value = None if element is None else element.get(key)
    if not value:
        raise SceneError(f'{where}: the URDF lacks the attribute "{key}"')
    return value


def _vector(
    element: Element | None, key: str, default: tuple[float, ...], where: str
) -> NDArray[np.float64]:
    text = None if element is None else element.get(key)
    return vector({} if text is None else {key: text.split()}, key, default, f'{where}: the URDF')
