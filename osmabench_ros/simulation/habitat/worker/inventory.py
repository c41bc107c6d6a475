"""What a loaded scene consists of, for the simulator to match with its own scene."""

from __future__ import annotations

from typing import Any


def inventory(simulator: Any) -> dict[str, Any]:
    """Return the things that appear in instance and semantic images, by kind, with their ids."""
    rigid = simulator.get_rigid_object_manager()
    articulated = simulator.get_articulated_object_manager()
    return {
        'objects': _ordered(_rigid(rigid.get_object_by_handle(handle)) for handle in _all(rigid)),
        'articulated': _ordered(
            _articulated(articulated.get_object_by_handle(handle)) for handle in _all(articulated)
        ),
        'annotations': annotated_objects(simulator),
        'stage': simulator.get_stage_initialization_template() is not None,
    }


def annotated_objects(simulator: Any) -> list[dict[str, Any]]:
    """Return pixel id and category of the objects of a semantic mesh, if the scene has one."""
    if simulator.semantic_scene is None:
        return []
    return [
        {'id': item.semantic_id, 'category': item.category.name() if item.category else ''}
        for item in simulator.semantic_scene.objects
        if item is not None
    ]


def _all(manager: Any) -> list[str]:
    return list(manager.get_object_handles())


def _ordered(items: Any) -> list[dict[str, Any]]:
    return sorted(items, key=lambda item: int(item['ids'][0]))


def _rigid(item: Any) -> dict[str, Any]:
    return {
        'ids': [item.object_id],
        'handle': item.handle,
        'semantic_id': item.semantic_id,
        'position': list(item.translation),
    }


def _articulated(item: Any) -> dict[str, Any]:
    return {
        'ids': [item.object_id, *sorted(item.link_object_ids)],
        'handle': item.handle,
        'semantic_id': 0,
        'position': list(item.translation),
    }
