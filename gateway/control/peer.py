"""Who is on the other side of a Unix socket, as the kernel says it."""

import socket
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_ANCESTORS: Final = 64

_LOCAL_PEERCRED: Final = 1
_LOCAL_PEERPID: Final = 2
_SOL_LOCAL: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """`pid` is 0 where the system does not tell it."""

    uid: int
    pid: int


def peer_of(connection: socket.socket) -> Peer:
    """Return who opened the other end of a connected Unix socket.

    Raises:
        OSError: The system does not say.
    """
    if sys.platform == "darwin":
        # struct xucred: version, uid, number of groups, groups.
        raw = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 4 * 20)
        (pid,) = struct.unpack("i", connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4))
        return Peer(uid=struct.unpack_from("I", raw, 4)[0], pid=pid)
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    return Peer(uid=uid, pid=pid)


def descends(pid: int, *, ancestor: int) -> bool:
    """Say whether a process was started by another one, at any distance."""
    for _ in range(MAX_ANCESTORS):
        pid = _parent(pid)
        if pid == ancestor:
            return True
        if pid <= 1:
            return False
    return False


def _parent(pid: int) -> int:
    if sys.platform == "darwin":
        command = ["/bin/ps", "-o", "ppid=", "-p", str(pid)]
        # A fixed program; the one argument is a number.
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        return int(done.stdout.strip() or 0)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    # The name stands in brackets and may hold anything.
    return int(stat.rpartition(")")[2].split()[1])
