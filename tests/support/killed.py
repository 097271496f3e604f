"""A real child that is killed at the nth thing it does to its files, by an audit hook."""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

# Such an event is raised just before the thing is done.
_HOOK: Final = """
import os, signal, sys

_left = int(sys.argv[1])

def _at(event, args):
    global _left
    if event in {"open", "os.rename", "os.listdir", "os.mkdir", "os.remove", "os.link"}:
        _left -= 1
        if _left == 0:
            print(event, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

def armed():
    os.umask(0o022)
    sys.addaudithook(_at)

"""


def killed_at(nth: int, script: str, *args: object) -> str | None:
    """Run a script that calls `armed()` before the part in question, with `sys.argv[2:]`.

    Returns what it was about to do when it was killed, None when it came to its end first.
    """
    command = [sys.executable, "-c", _HOOK + script, str(nth), *map(str, args)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=60)
    if done.returncode == 0:
        return None
    assert done.returncode < 0, done
    return done.stdout.split()[-1]
