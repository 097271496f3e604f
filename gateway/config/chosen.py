"""Opens a file that somebody named to be sent: once, a regular one, and none of our own secrets."""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from gateway.config.home import Home
from gateway.domain.errors import FileUnreadable
from gateway.domain.files import safe_name

_OPEN_FILES: Final = Path("/proc/self/fd")
# A pipe without a writer must not hold us up.
_LOOK: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def open_chosen(source: str, *, home: Home) -> Generator[BinaryIO]:
    """Open a file by its absolute path; what is opened is what was looked at.

    Where it exists, the file is first only pointed at (`O_PATH`): to open and close a file of the
    database would drop SQLite's locks on it.

    Raises:
        FileUnreadable: It is no regular file, a link, of our home, not there or not ours to read.
    """
    name = safe_name(source)
    if not os.path.isabs(source) or "\x00" in source:
        raise FileUnreadable(name, "must be given with its whole path")
    try:
        look = os.open(source, getattr(os, "O_PATH", 0) | _LOOK) if _points() else None
        seen = os.lstat(source) if look is None else os.fstat(look)
        try:
            _check(name, source, seen, home)
            where = source if look is None else f"{_OPEN_FILES}/{look}"
            flags = _LOOK if look is None else os.O_RDONLY | os.O_CLOEXEC
            file = os.fdopen(os.open(where, flags), "rb")
        finally:
            if look is not None:
                os.close(look)
    except OSError as error:
        raise FileUnreadable(name, _why(error)) from error
    with file:
        if _identity(os.fstat(file.fileno())) != _identity(seen):
            raise FileUnreadable(name, "was exchanged while it was opened")
        yield file


def _check(name: str, source: str, seen: os.stat_result, home: Home) -> None:
    if stat.S_ISLNK(seen.st_mode):
        raise FileUnreadable(name, "is a link; name the file itself")
    if not stat.S_ISREG(seen.st_mode):
        raise FileUnreadable(name, "is no file")
    if _identity(seen) in _secrets(home):
        raise FileUnreadable(name, "belongs to the gateway itself and is not sent")
    real = Path(os.path.realpath(source))
    inside = real.is_relative_to(os.path.realpath(home.path))
    free = (os.path.realpath(home.media), os.path.realpath(home.logs))
    if inside and not any(real.is_relative_to(place) for place in free):
        raise FileUnreadable(name, "belongs to the gateway itself and is not sent")


def _secrets(home: Home) -> frozenset[tuple[int, int]]:
    """Return what our own files are, by whatever name they are reached."""
    found: set[tuple[int, int]] = set()
    for folder in (home.path, home.mcp_tokens):
        try:
            with os.scandir(folder) as entries:
                found |= {_identity(entry.stat(follow_symlinks=False)) for entry in entries}
        except OSError:
            continue
    return frozenset(found)


def _identity(seen: os.stat_result) -> tuple[int, int]:
    return seen.st_dev, seen.st_ino


def _points() -> bool:
    return hasattr(os, "O_PATH") and _OPEN_FILES.is_dir()


def _why(error: OSError) -> str:
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return "is not there"
    if error.errno == errno.ELOOP:
        return "is a link; name the file itself"
    return f"cannot be read ({error.strerror})"
