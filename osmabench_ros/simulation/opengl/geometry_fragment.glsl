#version 430 core
// Surface of the nearest triangle of each pixel: colour, distance, identity, normal and face.

in vec3 world_position;
in vec3 world_normal;
in vec2 uv;
in float camera_z;
flat in vec4 color_and_id;
flat in float face;

uniform sampler2D surface;
uniform vec3 camera_position;

layout(location = 0) out vec4 albedo;
layout(location = 1) out vec2 depth_and_id;
layout(location = 2) out vec4 normal;

void main() {
    albedo = vec4(color_and_id.rgb * texture(surface, uv).rgb, 1.0);
    depth_and_id = vec2(camera_z, color_and_id.a);
    // Surfaces are two-sided. The flat normal decides which side is seen, so that smooth normals
    // do not flip at silhouettes and reversed windings do no harm.
    vec3 flat_normal = cross(dFdx(world_position), dFdy(world_position));
    flat_normal *= sign(dot(flat_normal, camera_position - world_position));
    vec3 smooth_normal = normalize(world_normal);
    normal = vec4(dot(smooth_normal, flat_normal) < 0.0 ? -smooth_normal : smooth_normal, face);
}
