#version 430 core
// Diffuse light on what the geometry pass found. SHADOWED: whether any light casts shadows.
// STRIDE: pixels from one to the next. TONE: whether a curve follows. FINE: whether this is one
// of LOOKS, which together have soft edges of shadows, corners darker in ambient light, and shine.

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
#if FINE
uniform sampler2D gloss;
#endif
uniform vec4 principal_and_focal;  // cx, cy, fx, fy
uniform mat3 world_from_camera;
uniform vec3 camera_position;
uniform int shadowed_count;     // the first lights of the block: positions with shadows
uniform int directional_count;  // then directional lights with shadows
uniform int light_count;        // then the others; this is the number of all
uniform float ambient;
uniform float exposure;
uniform float weight;  // of this look beside those that were blended before

#if SHADOWED
uniform sampler2DShadow shadow_atlas;
uniform vec2 tile_in_atlas;      // size of a tile as a share of the atlas
uniform float tile_texels;
uniform vec2 shadow_depth;       // depth of a perspective tile is .x - .y / distance
uniform mat4 directional_uvz[MAX_DIRECTIONAL];  // world to (u, v, depth) of a row
#endif

#if FINE
uniform int look;  // number of this look of LOOKS, which are blended
const int TAPS = 4;
const float GOLDEN_RAD = 2.39996323;
const float LEAST_ALPHA = 0.01;  // of a surface without any roughness
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

#if FINE
// Two unit vectors in the plane of a surface.
void plane_of(vec3 surface_normal, out vec3 right, out vec3 up) {
    vec3 other = abs(surface_normal.z) < 0.7 ? vec3(0.0, 0.0, 1.0) : vec3(1.0, 0.0, 0.0);
    right = normalize(cross(other, surface_normal));
    up = cross(surface_normal, right);
}

// What a surface sends back of light from one direction: appendix B of glTF 2.0. `diffuse` is the
// share that is left to be scattered. Light of intensity 1 makes a white matt surface white, so
// that there is no division by pi.
vec3 reflected(vec3 base, vec2 shine, vec3 n, vec3 v, vec3 l, out float diffuse) {
    vec3 h = normalize(l + v);
    float nl = max(dot(n, l), 0.0), nv = max(dot(n, v), 1e-4);
    float nh = max(dot(n, h), 0.0), vh = max(dot(v, h), 0.0);
    float a = max(shine.y * shine.y, LEAST_ALPHA), a2 = a * a;
    float spread = nh * nh * (a2 - 1.0) + 1.0;
    float distribution = a2 / (spread * spread);
    float visible = 0.5 / max(nl * sqrt(nv * nv * (1.0 - a2) + a2)
                              + nv * sqrt(nl * nl * (1.0 - a2) + a2), 1e-6);
    float grazing = pow(1.0 - vh, 5.0);
    diffuse = (1.0 - 0.04) * (1.0 - grazing);
    vec3 facing = mix(vec3(0.04), base, shine.x);
    return (facing + (1.0 - facing) * grazing) * distribution * visible;
}

// The same of light that is even from all directions (Karis, Physically based shading on mobile,
// 2014).
vec3 reflected_sky(vec3 facing, float roughness, float nv) {
    vec4 r = roughness * vec4(-1.0, -0.0275, -0.572, 0.022) + vec4(1.0, 0.0425, 1.04, -0.04);
    float narrow = min(r.x * r.x, exp2(-9.28 * nv)) * r.x + r.y;
    vec2 scale_and_bias = vec2(-1.04, 1.04) * narrow + r.zw;
    return facing * scale_and_bias.x + scale_and_bias.y;
}

// Share of the sky over a surface that nothing near hides (Mittring 2007, Shanmugam 2007).
float open_sky(vec3 position, vec3 surface_normal) {
    vec3 right, up;
    plane_of(surface_normal, right, up);
    ivec2 last = textureSize(depth_and_id, 0) - 1;
    float hidden = 0.0;
    for (int i = 0; i < TAPS; ++i) {
        int number = i * LOOKS + look;
        float share = (float(number) + 0.5) / float(TAPS * LOOKS);
        float turn = float(number) * GOLDEN_RAD;
        // Directions by the cosine, distances even: Malley's method.
        vec3 way = sqrt(share) * (cos(turn) * right + sin(turn) * up)
            + sqrt(1.0 - share) * surface_normal;
        float reach = OCCLUSION_M * fract(float(number) * 0.61803399 + 0.5);
        vec3 tap = transpose(world_from_camera)
            * (position + way * reach + surface_normal * 0.01 - camera_position);
        vec2 at = tap.xy / max(tap.z, 1e-3) * principal_and_focal.zw + principal_and_focal.xy;
        ivec2 pixel = clamp(ivec2(floor(at + 0.5)), ivec2(0), last);
        float z = texelFetch(depth_and_id, pixel, 0).x;
        hidden += z > 0.0 && z < tap.z - 0.01 && z > tap.z - 2.0 * OCCLUSION_M ? 1.0 : 0.0;
    }
    return 1.0 - hidden / float(TAPS);
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

    float sky = ambient;
    vec3 shaded = position;  // where shadows are looked up
#if FINE
    sky *= open_sky(position, surface_normal);
    vec3 right, up;
    plane_of(surface_normal, right, up);
    float turn = float(look) * GOLDEN_RAD;
    shaded += PENUMBRA_M * sqrt((float(look) + 0.5) / float(LOOKS))
        * (cos(turn) * right + sin(turn) * up);
#endif
    vec3 total = vec3(sky);
    vec3 to_light;
    float distance_m;
#if FINE
    // Light that shines back is kept apart from what is scattered.
    vec2 shine = texelFetch(gloss, pixel, 0).rg;
    vec3 view = normalize(camera_position - position);
    vec3 shining = vec3(0.0);
    float diffuse;
#define TAKE(factor, light) \
    shining += (factor) * (light).radiance.rgb \
        * reflected(surface, shine, surface_normal, view, to_light, diffuse); \
    total += (factor) * diffuse * (light).radiance.rgb
#else
#define TAKE(factor, light) total += (factor) * (light).radiance.rgb
#endif
#if SHADOWED
    for (int i = 0; i < shadowed_count; ++i) {
        float factor = received(lights[i], position, surface_normal, to_light, distance_m);
        factor *= lit_by_point(lights[i], shaded, surface_normal, distance_m);
        TAKE(factor, lights[i]);
    }
    for (int i = 0; i < directional_count; ++i) {
        Light light = lights[shadowed_count + i];
        float factor = received(light, position, surface_normal, to_light, distance_m);
        vec4 uvz = directional_uvz[i] * vec4(shaded + surface_normal * 0.03, 1.0);
        factor *= texture(shadow_atlas, uvz.xyz);
        TAKE(factor, light);
    }
#endif
    for (int i = shadowed_count + directional_count; i < light_count; ++i) {
        float factor = received(lights[i], position, surface_normal, to_light, distance_m);
        TAKE(factor, lights[i]);
    }
    total = max(total, vec3(sky));  // negative lights take from other lights alone
    vec3 sent = surface * total;
#if FINE
    float nv = max(dot(surface_normal, view), 1e-4);
    vec3 matt = reflected_sky(vec3(0.04), shine.y, nv);
    vec3 of_sky = mix(matt, reflected_sky(surface, shine.y, nv), shine.x);
    sent = surface * (total - sky * matt) * (1.0 - shine.x) + max(shining, 0.0) + sky * of_sky;
#endif
    vec3 linear = max(sent * exposure, 0.0);
#if TONE
    linear = min(filmed(linear), 1.0);
#elif STRIDE == 1
    linear = min(linear, 1.0);
#endif
    color = vec4(linear, weight);
}
