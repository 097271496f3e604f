"""One gateway per home: a lock that ends with its process. Not the database's own locking."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gateway.domain.errors import HomeError, HomeLocked

LOCK_NAME: Final = "gateway.lock"
_PID_BYTES: Final = 20


@contextmanager
def hold_home(home: Path) -> Generator[None]:
    """Hold the home until the block ends; a killed process lets go of it by itself.

    Raises:
        HomeLocked: Another process holds it; says which.
        HomeError: The lock file cannot be made there.
    """
    path = home / LOCK_NAME
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise HomeError(str(home), error.strerror or "no lock file can be made") from error
    try:
        _lock(handle, home)
        # The file stays when the lock ends: unlinking it would let two processes hold "the" lock.
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
        try:
            yield
        finally:
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _lock(handle: int, home: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise HomeLocked(str(home), _holder(handle)) from error
    except OSError as error:
        raise HomeError(str(home), error.strerror or "it cannot be locked") from error


def _holder(handle: int) -> int:
    text = os.pread(handle, _PID_BYTES, 0).strip()
    return int(text) if text.isdigit() else 0
