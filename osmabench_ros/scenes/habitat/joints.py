"""Positions of the joints of an articulated object, given as Habitat-Sim takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

from osmabench_ros.errors import SceneError

MOVING = ('revolute', 'continuous', 'prismatic')

URDF_ORDER = 'urdf_order'
"""Value of `link_order` under which links count in the order of the file."""


def joint_positions(
    root: Element,
    given: Mapping[str, float] | Sequence[float],
    where: str,
    link_order: str = '',
) -> dict[str, float]:
    """Return positions by joint, radians or metres, from an `initial_joint_pose`.

    Habitat-Sim gives values, an object's by the order of its keys, to the moving joints link by
    link (in `URDF_ORDER`, or parents first and siblings by name); the rest is at 0. Raises
    SceneError for values that are no numbers or too many, and for keys that are joints in another
    order.
    """
    moving = moving_joints(root, link_order)
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


def moving_joints(root: Element, link_order: str = '') -> list[str]:
    """Return the names of the joints that can move, in the order of Habitat-Sim's links."""
    joints = root.findall('joint')
    links = [link.get('name') for link in root.findall('link')]
    if link_order == URDF_ORDER:
        ordered = sorted(joints, key=lambda joint: _rank(links, _end(joint, 'child')))
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


def _rank(links: list[str | None], link: str | None) -> int:
    return links.index(link) if link in links else len(links)


def _end(joint: Element, key: str) -> str | None:
    element = joint.find(key)
    return None if element is None else element.get('link')
