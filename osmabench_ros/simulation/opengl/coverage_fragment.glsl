#version 430 core
// The face that covers each of several places of a pixel.

flat in float face;

out float covering;

void main() {
    covering = face;
}
