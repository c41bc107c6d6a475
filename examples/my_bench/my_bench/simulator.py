# my_bench/my_bench/simulator.py
import numpy as np
import open3d as o3d

from osmabench_ros.errors import SimulationError
from osmabench_ros.semantics.labels import NO_INSTANCE, UNLABELLED
from osmabench_ros.simulation.simulator import Observation


class RayCaster:
    """Shows objects in their own colours, in any light, with a ray for each pixel."""

    description = 'ray caster of my_bench 0.1.0'

    def __init__(self, scene, intrinsics, *, near_m=0.05, far_m=50.0):
        self.intrinsics, self._range_m = intrinsics, (near_m, far_m)
        self._rays = o3d.t.geometry.RaycastingScene()
        for item in scene.objects:
            faces = o3d.core.Tensor(item.world_faces.astype(np.uint32))
            self._rays.add_triangles(o3d.core.Tensor(item.world_vertices), faces)
        colors = [item.meshes[0].material.base_color for item in scene.objects]
        # The last row is for rays that hit nothing.
        self._colors = (255 * np.array([*colors, (0, 0, 0)])).astype(np.uint8)
        classes = [item.class_id for item in scene.objects]
        self._classes = np.array([*classes, UNLABELLED], np.uint16)
        instances = [item.instance_id for item in scene.objects]
        self._instances = np.array([*instances, NO_INSTANCE], np.int32)

    def set_lighting(self, lighting):
        pass

    def move_objects(self, poses):
        if poses:
            raise SimulationError('the ray caster moves no objects; choose another condition')

    def render(self, camera_pose):
        directions = self.intrinsics.rays() @ camera_pose.rotation.T
        origins = np.broadcast_to(camera_pose.translation, directions.shape)
        rays = np.concatenate([origins, directions], axis=-1).astype(np.float32)
        hits = self._rays.cast_rays(o3d.core.Tensor(rays))
        # Directions have length 1 along the optical axis, so distances are depths.
        depth_m = hits['t_hit'].numpy()
        near_m, far_m = self._range_m
        seen = (depth_m >= near_m) & (depth_m <= far_m)
        row = np.where(seen, hits['geometry_ids'].numpy(), len(self._classes) - 1)
        depth_m = np.where(seen, depth_m, np.float32(np.inf))
        return Observation(self._colors[row], depth_m, self._classes[row], self._instances[row])

    def close(self):
        pass
