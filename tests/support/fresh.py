"""Does what a newcomer does: clones what is committed, and runs `make run` on it with piped lines.

Run as `python -m tests.support.fresh`; it needs the package registry, like any set-up.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

LINES: Final = "add a note\n1\n/stop\n/whoami\n"
SECONDS: Final = 900


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="hermes-fresh-") as name:
        folder = Path(name)
        clone = folder / "clone"
        subprocess.run(["git", "clone", "--quiet", ".", str(clone)], check=True)
        kept = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
        pip = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
        done = subprocess.run(
            ["make", "run"],
            input=LINES,
            cwd=clone,
            env={**kept, **pip, "HOME": name, "HERMES_HOME": str(folder / "home")},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    fine = done.returncode == 0 and "1) notes" in done.stdout and "terminal:local" in done.stdout
    sys.stdout.write("a fresh clone runs\n" if fine else f"{done.stdout}\n{done.stderr}\n")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
