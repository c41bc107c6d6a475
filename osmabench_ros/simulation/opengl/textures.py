"""Images on the graphics device: textures, targets of passes; contexts without a display."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from osmabench_ros.errors import MissingDependencyError, needing

# OpenGL 4.3: indirect draws. Mesa's llvmpipe and every GPU of the last decade have it.
REQUIRED_VERSION = 430

DEBIAN_PACKAGES = 'libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri'
# Internal format: decoded to linear when sampled, encoded when rendered to.
SRGB8_ALPHA8 = 0x8C43

# Longer edges are scaled down; at 640 pixels a screen-filling wall does not show more.
LARGEST_TEXELS = 1024


class TextureStore:
    """One device texture, in the current context, for every distinct image of the materials."""

    def __init__(self, context: Any) -> None:
        self._context = context
        white = np.full((1, 1, 3), 255, np.uint8)
        self._textures = [self._upload(white)]
        self._by_identity: dict[int, int] = {}

    def add(self, image: NDArray[np.uint8] | None) -> int:
        """Upload an image if it is new, and return its number; None is plain white."""
        if image is None:
            return 0
        if id(image) not in self._by_identity:
            self._by_identity[id(image)] = len(self._textures)
            self._textures.append(self._upload(limit_texels(image)))
        return self._by_identity[id(image)]

    def __getitem__(self, number: int) -> Any:
        return self._textures[number]

    def release(self) -> None:
        """Free all textures."""
        for texture in self._textures:
            texture.release()
        self._textures.clear()

    def _upload(self, image: NDArray[np.uint8]) -> Any:
        height, width = image.shape[:2]
        opaque = np.full((height, width, 4), 255, np.uint8)
        opaque[..., :3] = image
        texture = self._context.texture(
            (width, height), 4, opaque.tobytes(), internal_format=SRGB8_ALPHA8
        )
        texture.build_mipmaps()  # no anisotropy: llvmpipe may not come back from it
        return texture


def limit_texels(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return an image (h, w, 3) with no edge longer than `LARGEST_TEXELS`."""
    height, width = image.shape[:2]
    scale = LARGEST_TEXELS / max(height, width)
    if scale >= 1:
        return image
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BOX))


class SurfaceImages:
    """Results of the geometry pass in each pixel: colour, depth and object number, normal.

    Pixels without a surface are black.
    """

    def __init__(self, context: Any, width: int, height: int) -> None:
        size = (width, height)
        self.albedo = context.texture(size, 4, internal_format=SRGB8_ALPHA8)
        self.depth_and_id = context.texture(size, 2, dtype='f4')
        self.normal = context.texture(size, 4, dtype='f2')
        self.depth_buffer = context.depth_renderbuffer(size)
        self.images = [self.albedo, self.depth_and_id, self.normal]
        self.all = context.framebuffer(self.images, self.depth_buffer)

    def read_depth_and_number(self) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Return z in metres (+inf without surface) and object numbers, (height, width) each."""
        raw = np.frombuffer(self.all.read(components=2, attachment=1, dtype='f4'), np.float32)
        pair = raw.reshape(self.all.height, self.all.width, 2)
        number = pair[..., 1].astype(np.int32)
        return np.where(number > 0, pair[..., 0], np.float32(np.inf)), number

    def release(self) -> None:
        """Free all images."""
        for item in (self.all, *self.images, self.depth_buffer):
            item.release()


def read_color(framebuffer: Any) -> NDArray[np.uint8]:
    """Return the first image of a framebuffer, shape (height, width, 3)."""
    pixels = np.frombuffer(framebuffer.read(components=4, attachment=0), np.uint8)
    pixels = pixels.reshape(framebuffer.height, framebuffer.width, 4)
    return np.ascontiguousarray(pixels[..., :3])


def create_context() -> Any:
    """Create a `moderngl.Context` through EGL; MissingDependencyError without EGL or a driver."""
    with needing('the embedded simulator needs moderngl', 'pip install moderngl glcontext'):
        import moderngl
    try:
        create: Any = moderngl.create_standalone_context  # its stub does not know `backend`
        return create(require=REQUIRED_VERSION, backend='egl')
    except Exception as error:  # moderngl and glcontext raise bare Exceptions
        raise MissingDependencyError(
            f'no OpenGL {REQUIRED_VERSION / 100:.1f} context through EGL ({error}); '
            f'apt-get install {DEBIAN_PACKAGES}, or install the driver of the GPU'
        ) from error


def get_renderer_name(context: Any) -> str:
    """Return what renders, e.g. ``'llvmpipe (LLVM 15.0.6, 256 bits), OpenGL 4.5'``."""
    code = context.version_code
    return f'{context.info["GL_RENDERER"]}, OpenGL {code // 100}.{code % 100 // 10}'


def read_shader(name: str, **defines: float) -> str:
    """Return the text of a shader in this folder, with preprocessor constants put in."""
    version, _, body = Path(__file__).with_name(name).read_text(encoding='utf-8').partition('\n')
    lines = [f'#define {key} {value}' for key, value in sorted(defines.items())]
    return '\n'.join([version, *lines, body])
