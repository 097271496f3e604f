"""What a process of this machine takes, as its kernel counts it."""

import os
from pathlib import Path
from typing import Final

MEBIBYTE: Final = 1 << 20


def memory_of(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE


def seconds_of(pid: int) -> float:
    """Return the processor time a process has had, to the nanosecond: all its threads'."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
