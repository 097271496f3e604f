"""Takes from root what lets it write files whose mode forbids it, since tests may run as root."""

import ctypes
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

_VERSION: Final = 0x20080522
_DAC_OVERRIDE: Final = 1 << 1


class _Header(ctypes.Structure):
    _fields_: ClassVar = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Data(ctypes.Structure):
    _fields_: ClassVar = [
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    ]


@contextmanager
def only_file_modes() -> Generator[None]:
    """Let file modes hold for this thread, and for those it starts, as for anybody else."""
    if os.geteuid() != 0:
        yield
        return
    libc: Any = ctypes.CDLL(None, use_errno=True)
    header, data = _Header(_VERSION, 0), (_Data * 2)()
    libc.capget(ctypes.byref(header), data)
    effective = data[0].effective
    data[0].effective = effective & ~_DAC_OVERRIDE
    if libc.capset(ctypes.byref(header), data) != 0:
        raise OSError(ctypes.get_errno(), "capset")
    try:
        yield
    finally:
        data[0].effective = effective
        libc.capset(ctypes.byref(header), data)
