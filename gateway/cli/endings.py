"""Waits for a process to end that is not our child."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

STEP_SECONDS: Final = 0.02
LAST_SECONDS: Final = 2.0
"""What a process gets to leave after it let go of its home."""


def wait_ended(pid: int, *, holder: Callable[[], int], seconds: float) -> bool:
    """Say whether the process is gone in time; `holder` says whose the home is, 0 for nobody's."""
    end = time.monotonic() + seconds
    while is_there(pid) and holder() == pid:
        if time.monotonic() > end:
            return False
        time.sleep(STEP_SECONDS)
    end = time.monotonic() + LAST_SECONDS
    while is_there(pid) and time.monotonic() < end:
        time.sleep(STEP_SECONDS)
    return True


def is_there(pid: int) -> bool:
    """Say whether a process runs; one that ended and whose parent does not look does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[:1] != ["Z"]
