"""One process a bot on this machine: two that receive for one bot would take each other's messages."""

import fcntl
import hashlib
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final

from gateway.domain.errors import AdapterError, HomeError

_PID_BYTES: Final = 20


class BotTaken(AdapterError):
    """Another process of ours runs this bot; `pid` is 0 when it did not say."""

    def __init__(self, pid: int) -> None:
        holder = f"process {pid}" if pid else "another process"
        super().__init__(f"{holder} on this machine already runs this bot")


@contextmanager
def hold_bot(
    platform: str, token: str, *, service: str, environ: Mapping[str, str]
) -> Generator[None]:
    """Hold a bot of a service until the block ends; a killed process lets go of it by itself.

    Raises:
        BotTaken: Another process holds it.
        HomeError: There is no private directory to hold it in.
    """
    from gateway.control.binding import check_directory
    from gateway.control.paths import short_directory

    directory = short_directory(environ)
    check_directory(directory)
    # Of the token only its digest leaves this process.
    digest = hashlib.sha256(f"{service} {token}".encode()).hexdigest()[:16]
    try:
        handle = os.open(
            directory / f"hermes-{platform}-{digest}.lock",
            os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW,
            0o600,
        )
    except OSError as error:
        raise HomeError(str(directory), error.strerror or "no lock file can be made") from error
    try:
        _lock(handle)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        text = os.pread(handle, _PID_BYTES, 0).strip()
        raise BotTaken(int(text) if text.isdigit() else 0) from error
