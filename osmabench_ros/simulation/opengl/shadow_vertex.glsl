#version 430 core
// Depth of the scene as a light sees it.

in vec3 in_position;
in vec4 in_pose_x;
in vec4 in_pose_y;
in vec4 in_pose_z;

uniform mat4 clip_from_world;

void main() {
    vec4 local = vec4(in_position, 1.0);
    vec3 world = vec3(dot(in_pose_x, local), dot(in_pose_y, local), dot(in_pose_z, local));
    gl_Position = clip_from_world * vec4(world, 1.0);
}
