#version 430 core
// Object coordinates to the world and to the camera (optical axes: x right, y down, z forward).

in vec3 in_position;
in vec3 in_normal;
in vec2 in_uv;

// One draw is one mesh of one object: rows of its pose, then linear colour and instance number,
// and its number.
in vec4 in_pose_x;
in vec4 in_pose_y;
in vec4 in_pose_z;
in vec4 in_color_and_id;
in float in_mesh;

uniform mat4 camera_from_world;
uniform mat4 clip_from_camera;

out vec3 world_position;
out vec3 world_normal;
out vec2 uv;
out float camera_z;
flat out vec4 color_and_id;
flat out float face;  // a number of mesh and direction, as half floats hold it; 0 is no surface

void main() {
    vec4 local = vec4(in_position, 1.0);
    world_position = vec3(dot(in_pose_x, local), dot(in_pose_y, local), dot(in_pose_z, local));
    world_normal = vec3(dot(in_pose_x.xyz, in_normal), dot(in_pose_y.xyz, in_normal),
                        dot(in_pose_z.xyz, in_normal));
    uv = in_uv;
    color_and_id = in_color_and_id;
    uvec3 way = uvec3(ivec3(round(world_normal * 16.0)));
    uint mixed = uint(in_mesh) * 73856093u ^ way.x * 19349663u ^ way.y * 83492791u ^ way.z * 9973u;
    face = float(1u + mixed % 2047u);
    vec4 in_camera = camera_from_world * vec4(world_position, 1.0);
    camera_z = in_camera.z;
    gl_Position = clip_from_camera * in_camera;
}
