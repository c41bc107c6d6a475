"""RTAB-Map: the files of rtabmap-export, and the size of the graph from the database."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from osmabench_ros.base.contract import CAMERA_FRAME
from osmabench_ros.base.fence import read_in_fence
from osmabench_ros.errors import MapError, errors_as
from osmabench_ros.geometry.stamped_trajectory import read_tum
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers import source_files as source
from osmabench_ros.maps.importers.assembly import MapBuilder, Method
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap

METHOD = Method('rtabmap', World.Z_UP)


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read the folder of `rtabmap-export --cloud --poses_camera --poses_format 10`; z up.

    `path` is a folder with one `*_cloud.ply`, with `*_camera_poses.txt` (TUM, the optical frame)
    if poses are to be scored, and with the `*.db` itself, of which version and numbers of nodes
    and loop closures are kept; or only the cloud. Their origin is the first pose of the robot, x
    forward: options.pose says where that was in the world. Where track is lost, RTAB-Map begins a
    new map; the export holds what hangs together with the first, and the remark names the rest.
    """
    folder = path if path.is_dir() else path.parent
    cloud = source.find_file(path, ('*_cloud.ply',), 'cloud of rtabmap-export')
    poses = source.find_any_file(folder, ('*_camera_poses.txt',), 'file of camera poses')
    database = source.find_any_file(folder, ('*.db',), 'database of RTAB-Map')
    builder = MapBuilder(METHOD, options)
    points, (colors,) = builder.place_cloud(*source.read_points(cloud))
    graph = {} if database is None else read_in_fence(read_graph, database)
    made = builder.build(
        dense=DenseMap(points, colors),
        source_sha256=source.hash_files(cloud, poses, database),
        extras=graph,
    )
    if poses is None:
        return made
    moved = read_tum(poses).transform(builder.into_map)
    moved = replace(moved, frame_id=options.frame_id, child_frame_id=CAMERA_FRAME)
    remark = _describe_rest(graph, len(moved)) if graph else ''
    return replace(made, header=replace(made.header, remark=remark), trajectory=moved)


def _describe_rest(graph: Mapping[str, Any], exported: int) -> str:
    """Return a note on nodes that the export leaves out because track broke; '' without any."""
    maps = graph['maps']
    left = graph['nodes'] - exported
    if maps < 2 or left < 1:
        return ''
    return (
        f'RTAB-Map lost track and began again ({maps} maps); {left} nodes that no loop closure '
        'ties to the first map are not in its export'
    )


def read_graph(path: Path) -> dict[str, Any]:
    """Return the version of a database and the size of its graph; runs in the fence."""
    with errors_as(MapError, f'{path} is not a database of RTAB-Map', sqlite3.Error, TypeError):
        connection = sqlite3.connect(f'{path.resolve().as_uri()}?mode=ro&immutable=1', uri=True)
        with closing(connection):
            [version] = connection.execute('SELECT version FROM Admin').fetchone()
            nodes, maps = connection.execute(
                'SELECT COUNT(*), COUNT(DISTINCT map_id) FROM Node'
            ).fetchone()
            # Closures are links 1 to 3 (global; local in space, in time), one in each direction.
            [closures] = connection.execute(
                'SELECT COUNT(*) FROM Link WHERE from_id > to_id AND type BETWEEN 1 AND 3'
            ).fetchone()
    return {
        'version': str(version),
        'nodes': int(nodes),
        'maps': int(maps),
        'loop_closures': int(closures),
    }
