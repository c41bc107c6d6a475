"""Articulated objects (URDF) in the pose that a scene gives to their joints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from osmabench_ros.errors import SceneError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.assets import linearly_mapped, load_meshes, moved
from osmabench_ros.scenes.gazebo.xml import pose_from_rpy, read_xml
from osmabench_ros.scenes.primitives import box, cylinder, sphere
from osmabench_ros.scenes.scene import Mesh

MOVING = ('revolute', 'continuous', 'prismatic')


def load_urdf(
    path: Path, joints: Mapping[str, float] | list[float], where: str
) -> tuple[Mesh, ...]:
    """Read the visual meshes of a URDF.

    Parameters
    ----------
    path : Path
        The URDF.
    joints : mapping or list
        Positions of the moving joints by name, or in the order of the file; 0 where absent.
    where : str
        Named in errors.

    Returns
    -------
    tuple of Mesh
        In the inertial frame of the root link, which is what a scene instance places; axes as in
        the file.
    """
    root = read_xml(path)
    poses = _link_poses(root, joints, where)
    from_inertial = _inertial_frame(root, where).inverse()
    meshes: list[Mesh] = []
    for link in root.findall('link'):
        pose = from_inertial @ poses.get(link.get('name', ''), Pose.identity())
        for visual in link.findall('visual'):
            offset = pose @ _origin(visual, where)
            meshes += [moved(mesh, offset) for mesh in _geometry(visual, path, where)]
    if not meshes:
        raise SceneError(f'{where}: {path} has no visual meshes')
    return tuple(meshes)


def _link_poses(
    root: Element, joints: Mapping[str, float] | list[float], where: str
) -> dict[str, Pose]:
    elements = root.findall('joint')
    positions = _positions(elements, joints, where)
    parents: dict[str, tuple[str, Pose]] = {}
    for joint in elements:
        parent, child = (_attribute(joint.find(key), 'link', where) for key in ('parent', 'child'))
        name = joint.get('name', '')
        local = _origin(joint, where) @ _motion(joint, positions.get(name, 0.0), where)
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


def _positions(
    elements: list[Element], joints: Mapping[str, float] | list[float], where: str
) -> dict[str, float]:
    moving = [joint.get('name', '') for joint in elements if joint.get('type') in MOVING]
    named = (
        dict(joints) if isinstance(joints, Mapping) else dict(zip(moving, joints, strict=False))
    )
    try:
        return {name: float(value) for name, value in named.items()}
    except (TypeError, ValueError):
        raise SceneError(f'{where}: "initial_joint_pose" must hold numbers') from None


def _motion(joint: Element, position: float, where: str) -> Pose:
    if joint.get('type') not in MOVING or position == 0:
        return Pose.identity()
    axis = _vector(joint.find('axis'), 'xyz', (1.0, 0.0, 0.0), where)
    axis = axis / max(float(np.linalg.norm(axis)), 1e-12)
    if joint.get('type') == 'prismatic':
        return Pose(np.eye(3), position * axis)
    return Pose(Rotation.from_rotvec(position * axis).as_matrix(), np.zeros(3))


def _geometry(visual: Element, path: Path, where: str) -> tuple[Mesh, ...]:
    geometry = visual.find('geometry')
    for item in () if geometry is None else geometry:
        if item.tag == 'mesh':
            file = _attribute(item, 'filename', where).removeprefix('package://')
            scale = _vector(item, 'scale', (1.0, 1.0, 1.0), where)
            meshes = load_meshes(path.parent / file)
            return tuple(linearly_mapped(mesh, np.diag(scale)) for mesh in meshes)
        if item.tag == 'box':
            return (box(_vector(item, 'size', (1.0, 1.0, 1.0), where)),)
        radius = float(_vector(item, 'radius', (0.5,), where)[0])
        if item.tag == 'sphere':
            return (sphere(radius),)
        if item.tag == 'cylinder':
            return (cylinder(radius, float(_vector(item, 'length', (1.0,), where)[0])),)
    return ()


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
    text: Any = None if element is None else element.get(key)
    if text is None:
        return np.array(default)
    try:
        values = np.array([float(part) for part in text.split()])
    except ValueError:
        values = np.empty(0)
    if values.shape != (len(default),) or not np.isfinite(values).all():
        raise SceneError(f'{where}: URDF attribute {key}="{text}" needs {len(default)} numbers')
    return values
