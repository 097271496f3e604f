"""What a process holds of the machine, read from outside, and who else still runs of its family."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE_KIB: Final = os.sysconf("SC_PAGE_SIZE") // 1024
SPARE_DESCRIPTORS: Final = 16
"""A connection more or less to a service is no leak."""
SPARE_MEMORY: Final = 1.5
"""How much of a fresh process's memory one may hold that has just worked a lot off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Open descriptors, child processes, resident memory in KiB."""

    descriptors: int
    children: int
    memory: int

    def beyond(self, fresh: "Footprint") -> list[str]:
        """Name what is not back to what a fresh process holds."""
        found: list[str] = []
        if self.descriptors > fresh.descriptors + SPARE_DESCRIPTORS:
            found.append(f"{self.descriptors} descriptors, a fresh process has {fresh.descriptors}")
        if self.children > fresh.children:
            found.append(f"{self.children} children, a fresh process has {fresh.children}")
        if self.memory > fresh.memory * SPARE_MEMORY:
            found.append(f"{self.memory} KiB, a fresh process has {fresh.memory} KiB")
        return found


def children_of(pid: int) -> list[int]:
    """Return the child processes of a process; none of one that ends meanwhile."""
    try:
        tasks = (Path("/proc") / str(pid) / "task").iterdir()
        found = [(task / "children").read_text("ascii").split() for task in tasks]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for children in found for child in children]


def footprint(pid: int) -> Footprint:
    """Read what a running process holds."""
    proc = Path("/proc") / str(pid)
    return Footprint(
        descriptors=len(list((proc / "fd").iterdir())),
        children=len(children_of(pid)),
        memory=int((proc / "statm").read_text("ascii").split()[1]) * PAGE_KIB,
    )


def running_with(text: str) -> list[int]:
    """Return the processes whose command line holds a text, this one left out."""
    found: list[int] = []
    for proc in Path("/proc").iterdir():
        if not proc.name.isdigit() or int(proc.name) == os.getpid():
            continue
        try:
            command = (proc / "cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in command:
            found.append(int(proc.name))
    return found
