"""Notices that the database's files were replaced or deleted under the open connection.

Commits then still succeed, into files nobody else sees. Compares paths with what this process has
open, by `stat` alone: opening one of the files would itself break SQLite's locks.
"""

import os
from pathlib import Path
from typing import Final

_OPEN_FILES: Final = Path("/proc/self/fd")
_DELETED: Final = " (deleted)"


class InodeGuard:
    """Watches one database file and its write-ahead log; silent where /proc does not exist."""

    def __init__(self, path: Path) -> None:
        real = os.path.realpath(path)
        self._paths: Final = (real, f"{real}-wal")

    def problem(self) -> str:
        """Return what is wrong, "" when the files are the open ones."""
        for target, inode in self._open_files():
            path = target.removesuffix(_DELETED)
            if path in self._paths and _inode(path) != inode:
                return f"{path} was replaced or deleted while in use: commits reach nobody"
        return ""

    def _open_files(self) -> list[tuple[str, int]]:
        try:
            names = os.listdir(_OPEN_FILES)
        except OSError:
            return []
        found: list[tuple[str, int]] = []
        for name in names:
            entry = f"{_OPEN_FILES}/{name}"
            try:
                target = os.readlink(entry)
                if target.removesuffix(_DELETED) in self._paths:
                    found.append((target, os.stat(entry).st_ino))
            except OSError:
                # Closed by another thread in between.
                continue
        return found


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None
