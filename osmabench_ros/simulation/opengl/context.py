"""OpenGL contexts without a display."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from osmabench_ros.errors import MissingDependencyError, SimulationError, needing

REQUIRED_VERSION = 430
"""OpenGL 4.3: indirect draws. Mesa's llvmpipe and every GPU of the last decade have it."""

DEBIAN_PACKAGES = 'libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri'


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


def renderer_name(context: Any) -> str:
    """Return what renders, e.g. ``'llvmpipe (LLVM 15.0.6, 256 bits), OpenGL 4.5'``."""
    code = context.version_code
    return f'{context.info["GL_RENDERER"]}, OpenGL {code // 100}.{code % 100 // 10}'


def shader_source(name: str, **defines: float) -> str:
    """Return the text of a shader beside this file, with preprocessor constants put in."""
    version, _, body = Path(__file__).with_name(name).read_text(encoding='utf-8').partition('\n')
    lines = [f'#define {key} {value}' for key, value in sorted(defines.items())]
    return '\n'.join([version, *lines, body])


class Ownership:
    """Remembers the thread that made a context, because OpenGL fails silently on others."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._thread = threading.get_ident()
        self.closed = False

    def check(self) -> None:
        """Raise SimulationError if closed, or called from a thread that is not the owner."""
        if self.closed:
            raise SimulationError(f'{self._owner} is closed; make a new one')
        if threading.get_ident() != self._thread:
            raise SimulationError(
                f'{self._owner} belongs to the thread that made it and was called from '
                f'"{threading.current_thread().name}"; make and use it in one thread'
            )
