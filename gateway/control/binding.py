"""Makes the control socket: private from the moment it exists, in a directory that is ours."""

import os
import socket
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from gateway.control.paths import SOCKET_NAME
from gateway.domain.errors import HomeError

_OTHERS_NOTHING: Final = 0o177
"""A bound socket file is made 0777 less this: 0600."""

_ALONE: Final = 0o700


@contextmanager
def bound_socket(path: Path) -> Generator[socket.socket]:
    """Bind the socket until the block ends; whoever holds the home takes a stale one away.

    Raises:
        HomeError: It cannot be bound there.
    """
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        inode = _bind(server, path)
        try:
            yield server
        finally:
            # A successor that could not wait has its own socket there by now.
            with suppress(OSError):
                if path.stat().st_ino == inode:
                    path.unlink()
    finally:
        server.close()


def _bind(server: socket.socket, path: Path) -> int:
    try:
        if path.name != SOCKET_NAME:
            check_directory(path.parent)
        with suppress(FileNotFoundError):
            path.unlink()
        before = os.umask(_OTHERS_NOTHING)
        try:
            server.bind(str(path))
        finally:
            os.umask(before)
        server.setblocking(False)
        return path.stat().st_ino
    except OSError as error:
        why = f"the control socket {path} cannot be made: {error.strerror or error}"
        raise HomeError(str(path.parent), why) from error


def check_directory(directory: Path) -> None:
    """Make sure of a directory outside the home: others could put their own files there.

    Raises:
        HomeError: It is not ours alone.
        OSError: It cannot be made.
    """
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    found = directory.lstat()
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not ours or stat.S_IMODE(found.st_mode) != _ALONE:
        raise HomeError(str(directory), "it is not ours alone, so nothing of ours is put there")
