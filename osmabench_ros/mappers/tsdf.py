"""TSDF: fuses depth with the poses given, by Open3D; geometry and colour without meaning."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import needing
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers.bundled import BundledMapper
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.semantics.labels import LabelSet

# Open3D takes the pixel that a projection is cut off to, not the nearest one: without this a floor
# seen at a low angle sinks by a centimetre.
HALF_PIXEL = np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])


# Distance to a surface, in voxels, at which the signed distance is cut off.
TRUNCATION_VOXELS = 4.0

# Pixels farther away are left out.
MAX_DEPTH_M = 6.0

# In how many frames a voxel must have been seen to be part of the surface.
MIN_FRAMES = 2.0


class TsdfOptions(Strict):
    """Options of the tsdf mapper.

    Parameters
    ----------
    voxel_m : float
        Edge of a voxel.
    """

    voxel_m: float = Field(0.02, gt=0.001, le=1.0)


class TsdfMapper(BundledMapper):
    """Open3D's voxel-block grid of truncated signed distances, with ground-truth poses.

    Its map has points and colours and neither labels nor objects, so it is scored only by
    geometry. The effect of light, speed and dropped frames on depth shows in its surfaces.

    References
    ----------
    Curless and Levoy, A Volumetric Method for Building Complex Models from Range Images, 1996;
    Dong et al., ASH: A Modern Framework for Parallel Spatial Hashing in 3D Perception, 2022.
    """

    name = 'tsdf'

    def __init__(self, *, label_set: LabelSet, seed: int, options: dict[str, Any]) -> None:
        super().__init__(label_set, seed)
        self.options = validated(TsdfOptions, options, f'mapper "{self.name}"')
        with needing(f'mapper "{self.name}" needs Open3D', extra('geometry')):
            import open3d
        self.library: Any = open3d
        kind = open3d.core.float32
        self._grid = self.library.t.geometry.VoxelBlockGrid(
            ('tsdf', 'weight', 'color'), (kind, kind, kind), (1, 1, 3),
            voxel_size=self.options.voxel_m, block_resolution=8, block_count=10_000,
        )  # fmt: skip

    def integrate(self, frame: Frame) -> None:
        """Take one frame into the map."""
        self.count(frame)
        self.fuse(frame)

    def fuse(self, frame: Frame) -> None:
        """Fuse the depth of a frame at its pose."""
        if not (frame.valid & (frame.depth_m <= MAX_DEPTH_M)).any():
            return
        tensor = self.library.core.Tensor
        depth, color = self.images(frame)
        matrix, to_camera = frame.intrinsics.matrix, tensor(frame.camera_pose.inverse().matrix)
        reach = 1.0, MAX_DEPTH_M, TRUNCATION_VOXELS
        blocks = self._grid.compute_unique_block_coordinates(
            depth, tensor(matrix), to_camera, *reach
        )
        self._grid.integrate(blocks, depth, color, tensor(matrix + HALF_PIXEL), to_camera, *reach)

    def images(self, frame: Frame) -> tuple[Any, Any]:
        """Return depth, 0 where there is none, and colour as images of Open3D."""
        tensor, image = self.library.core.Tensor, self.library.t.geometry.Image
        used = frame.valid & (frame.depth_m <= MAX_DEPTH_M)
        depth = image(tensor(np.where(used, frame.depth_m, np.float32(0.0))[..., None]))
        return depth, image(tensor(frame.color.astype(np.float32) / 255.0))

    def semantic_map(self, *, final: bool) -> SemanticMap:
        """Return the map so far; `final` if no frame will follow."""
        points, colors = self._surface()
        header = self.header(final=final, method_version=f'Open3D {self.library.__version__}')
        return SemanticMap(
            header, dense=DenseMap(points=points, colors=colors), label_set=self.label_set
        )

    def _surface(self) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        if not self._grid.hashmap().size():
            return np.empty((0, 3), np.float32), np.empty((0, 3), np.uint8)
        cloud = self._grid.extract_point_cloud(weight_threshold=MIN_FRAMES).point
        points = cloud.positions.numpy()
        # Threads extract the blocks in any order.
        order = np.lexsort(points.T)
        colors = np.rint(cloud.colors.numpy()[order] * 255.0).astype(np.uint8)
        return points[order].astype(np.float32), colors
