#version 430 core
// Mean colour of a pixel over several places. A place on another face than the pixel's middle
// takes the colour of neighbours on that face: Chajdas, McGuire and Luebke, Subpixel
// reconstruction antialiasing for deferred shading, 2011.

uniform sampler2DMS covering;  // faces in the places of a pixel
uniform sampler2D normal;      // and in its middle: w
uniform sampler2D lit;         // linear colour of the middles

out vec4 color;

const vec2 PLACES[4] = vec2[](vec2(-0.125, -0.375), vec2(0.375, -0.125),
                              vec2(-0.375, 0.125), vec2(0.125, 0.375));

void main() {
    ivec2 pixel = ivec2(gl_FragCoord.xy);
    ivec2 last = textureSize(lit, 0) - 1;
    float middle = texelFetch(normal, pixel, 0).w;
    vec3 own = texelFetch(lit, pixel, 0).rgb;
    float place[4];
    vec4 sum[4];
    bool edge = false;
    for (int i = 0; i < 4; ++i) {
        place[i] = texelFetch(covering, pixel, i).x;
        sum[i] = vec4(0.0);
        edge = edge || place[i] != middle;
    }
    int around = edge ? 9 : 0;
    for (int j = 0; j < around; ++j) {
        ivec2 way = ivec2(j % 3, j / 3) - 1;
        ivec2 there = clamp(pixel + way, ivec2(0), last);
        float found = texelFetch(normal, there, 0).w;
        vec4 light = vec4(texelFetch(lit, there, 0).rgb, 1.0);
        for (int i = 0; i < 4; ++i) {
            vec2 offset = vec2(way) - PLACES[i];
            sum[i] += place[i] == found ? light / dot(offset, offset) : vec4(0.0);
        }
    }
    vec3 total = vec3(0.0);
    for (int i = 0; i < 4; ++i) {
        total += place[i] != middle && sum[i].a > 0.0 ? sum[i].rgb / sum[i].a : own;
    }
    color = vec4(total / 4.0, 1.0);
}
