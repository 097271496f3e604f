"""Writing files so that a reader sees the old or the new one, and nobody else sees either."""

import errno
import os
import secrets
from pathlib import Path

from gateway.config.home import FILE_MODE


def replace_file(path: Path, text: str) -> None:
    """Put `text` in the place of `path`, whole or not at all; a symbolic link keeps its place.

    Raises:
        OSError: Nothing was changed.
    """
    target = Path(os.path.realpath(path))
    fresh = _write_beside(target, text)
    try:
        fresh.replace(target)
    except OSError:
        fresh.unlink()
        raise
    sync_directory(target.parent)


def create_file(path: Path, text: str) -> bool:
    """Make `path` with `text`, whole or not at all; False when something is there already.

    Raises:
        OSError: Nothing was made.
    """
    if os.path.lexists(path):
        return False
    fresh = _write_beside(path, text)
    try:
        # Unlike a rename, a link never takes the place of a file that appeared meanwhile.
        os.link(fresh, path)
    except FileExistsError:
        return False
    except OSError as cause:
        # Some file systems know no links; there a rename is the nearest.
        if cause.errno not in {errno.EPERM, errno.ENOTSUP, errno.ENOSYS}:
            raise
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    sync_directory(path.parent)
    return True


def _write_beside(target: Path, text: str) -> Path:
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        fresh.unlink()
        raise
    return fresh


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable.

    Raises:
        OSError: It cannot be done.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
