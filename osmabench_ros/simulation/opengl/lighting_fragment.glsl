#version 430 core
// Diffuse light on what the geometry pass found. SHADOWED: whether any light casts shadows.
// STRIDE: pixels from one to the next. TONE: whether a curve follows.

struct Light {
    vec4 position;   // world metres; w: 0 point, 1 directional, 2 spot
    vec4 direction;  // world, the way the light travels; w: row in the shadow atlas, -1 without
    vec4 radiance;   // linear colour times intensity, may be negative
    vec4 cone;       // cosines of the outer and the inner edge of a spot
};

layout(std140, binding = 0) uniform Lights { Light lights[MAX_LIGHTS]; };

uniform sampler2D albedo;
uniform sampler2D depth_and_id;
uniform sampler2D normal;
uniform vec4 principal_and_focal;  // cx, cy, fx, fy
uniform mat3 world_from_camera;
uniform vec3 camera_position;
uniform int shadowed_count;     // the first lights of the block: positions with shadows
uniform int directional_count;  // then directional lights with shadows
uniform int light_count;        // then the others; this is the number of all
uniform float ambient;
uniform float exposure;

#if SHADOWED
uniform sampler2DShadow shadow_atlas;
uniform vec2 tile_in_atlas;      // size of a tile as a share of the atlas
uniform float tile_texels;
uniform vec2 shadow_depth;       // depth of a perspective tile is .x - .y / distance
uniform mat4 directional_uvz[MAX_DIRECTIONAL];  // world to (u, v, depth) of a row
#endif

out vec4 color;

const float NEAREST_M = 0.1;  // the inverse-square law is not followed closer than this

// Irradiance factor of a light; `to_light` is the unit vector towards it.
float received(Light light, vec3 position, vec3 surface_normal, out vec3 to_light,
               out float distance_m) {
    vec3 offset = light.position.xyz - position;
    distance_m = length(offset);
    bool directional = light.position.w == 1.0;
    to_light = directional ? -light.direction.xyz : offset / max(distance_m, 1e-6);
    float nearest = max(distance_m, NEAREST_M);
    float factor = directional ? 1.0 : 1.0 / (nearest * nearest);
    float cone = smoothstep(light.cone.x, light.cone.y, -dot(to_light, light.direction.xyz));
    factor *= light.position.w == 2.0 ? cone : 1.0;
    return factor * max(dot(surface_normal, to_light), 0.0);
}

#if SHADOWED
// Point lights look along the six axes of the world, one tile each; 1 is lit, 0 is shadow.
float lit_by_point(Light light, vec3 position, vec3 surface_normal, float distance_m) {
    float texel_m = 2.0 * distance_m / tile_texels;
    vec3 ray = position + surface_normal * (1.5 * texel_m + 0.004) - light.position.xyz;
    vec3 size = abs(ray);
    bool x_major = size.x >= size.y && size.x >= size.z;
    bool y_major = !x_major && size.y >= size.z;
    vec3 turned = x_major ? ray.yzx : y_major ? ray.zxy : ray.xyz;
    float face = (x_major ? 0.0 : y_major ? 2.0 : 4.0) + (turned.z < 0.0 ? 1.0 : 0.0);
    float major = abs(turned.z);
    vec2 in_tile = turned.xy / major * 0.5 + 0.5;
    in_tile = clamp(in_tile, 0.5 / tile_texels, 1.0 - 0.5 / tile_texels);
    vec2 in_atlas = (vec2(face, light.direction.w) + in_tile) * tile_in_atlas;
    float reference = shadow_depth.x - shadow_depth.y / (major - 0.004);
    return texture(shadow_atlas, vec3(in_atlas, reference));
}
#endif

#if TONE
// Hable, Filmic tonemapping for real-time rendering, 2010; white is 11.2 before the curve, and
// the gain before it leaves a linear 0.18 where it is.
vec3 curve(vec3 x) {
    return (x * (0.22 * x + 0.03) + 0.002) / (x * (0.22 * x + 0.3) + 0.06) - 0.01 / 0.3;
}

vec3 filmed(vec3 linear) {
    return curve(1.7583 * linear) / curve(vec3(11.2));
}
#endif

void main() {
    ivec2 pixel = ivec2(gl_FragCoord.xy) * STRIDE;
    float z = texelFetch(depth_and_id, pixel, 0).x;
    vec3 surface = texelFetch(albedo, pixel, 0).rgb;
    vec3 surface_normal = texelFetch(normal, pixel, 0).xyz;
    vec2 ray = (vec2(pixel) - principal_and_focal.xy) / principal_and_focal.zw;
    vec3 position = camera_position + world_from_camera * (vec3(ray, 1.0) * z);

    vec3 total = vec3(ambient);
    vec3 to_light;
    float distance_m;
#if SHADOWED
    for (int i = 0; i < shadowed_count; ++i) {
        float factor = received(lights[i], position, surface_normal, to_light, distance_m);
        factor *= lit_by_point(lights[i], position, surface_normal, distance_m);
        total += factor * lights[i].radiance.rgb;
    }
    for (int i = 0; i < directional_count; ++i) {
        Light light = lights[shadowed_count + i];
        float factor = received(light, position, surface_normal, to_light, distance_m);
        vec4 uvz = directional_uvz[i] * vec4(position + surface_normal * 0.03, 1.0);
        factor *= texture(shadow_atlas, uvz.xyz);
        total += factor * light.radiance.rgb;
    }
#endif
    for (int i = shadowed_count + directional_count; i < light_count; ++i) {
        float factor = received(lights[i], position, surface_normal, to_light, distance_m);
        total += factor * lights[i].radiance.rgb;
    }
    total = max(total, vec3(ambient));  // negative lights take from other lights alone
    vec3 linear = max(surface * total * exposure, 0.0);
#if TONE
    linear = min(filmed(linear), 1.0);
#elif STRIDE == 1
    linear = min(linear, 1.0);
#endif
    color = vec4(linear, 1.0);
}
