"""How the Rerun viewer lays a recording out when it opens it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from osmabench_ros.errors import MissingDependencyError
from osmabench_ros.reports.viewed import View

_MAP_HIDES = ('map/errors', 'map/color', 'map/class/ceiling', 'ground_truth', 'graph/errors')
_DENSE_RELATIONS = ('near', 'next-to', 'attached-to', 'part-of')
"""Relations that would hide the others; drawn, but switched off."""

_GRAPH_HIDES = ('graph/structure', *(f'graph/edges/{name}' for name in _DENSE_RELATIONS))


def require_rerun() -> Any:
    """Return the module rerun; raises MissingDependencyError if it is not installed."""
    try:
        import rerun
        import rerun.blueprint
    except ImportError as error:
        raise MissingDependencyError(
            f"a Rerun recording needs rerun ({error}); pip install 'osmabench_ros[rerun]'"
        ) from error
    return rerun


def layout_of(view: View) -> Any:
    """Return the blueprint: the world at the left; camera and text beside it."""
    blueprint = require_rerun().blueprint

    def world(name: str, hidden: Iterable[str], **options: Any) -> Any:
        overrides = {f'world/{item}': blueprint.EntityBehavior(visible=False) for item in hidden}
        return blueprint.Spatial3DView(
            origin='world', name=name, overrides=overrides, **_from_above(view), **options
        )

    maps = [world('Map', (*_MAP_HIDES, *_GRAPH_HIDES, 'camera/depth'))]
    if view.truth is not None:
        contents = ['world/map/errors/**', 'world/graph/errors', 'world/path']
        maps.append(world('Errors', ('map/errors/ceiling',), contents=contents))
    about = blueprint.TextDocumentView(origin='about', name='About')
    images = [
        blueprint.Spatial2DView(origin='world/camera', name=name, contents=f'$origin/{part}')
        for name, part in (('Colour', 'image'), ('Depth', 'depth'))
    ]
    camera = blueprint.Tabs(*images)
    side = blueprint.Vertical(camera, about) if view.intrinsics is not None else about
    return blueprint.Blueprint(
        blueprint.Horizontal(blueprint.Tabs(*maps), side, column_shares=[2, 1]),
        collapse_panels=True,
    )


def _from_above(view: View) -> dict[str, Any]:
    """Return where the view looks from, where this release of rerun lets one say so."""
    dense = view.semantic_map.dense
    make = getattr(require_rerun().blueprint, 'EyeControls3D', None)
    if make is None or dense is None or not len(dense.points):
        return {}
    low, high = np.percentile(dense.points, (2, 98), axis=0)
    middle, extent = (low + high) / 2, float(np.linalg.norm(high - low))
    position = middle + extent * np.array([-0.35, -0.55, 0.75])
    return {
        'eye_controls': make(
            position=position.tolist(), look_target=middle.tolist(), eye_up=[0, 0, 1]
        )
    }
