"""Holds every Python file under the ceiling of lines. Run as `python -m tests.support.sizes`."""

import sys
from pathlib import Path
from typing import Final

CEILING: Final = 600
FOLDERS: Final = ("gateway", "adapters", "mcp_host", "store", "tests", "bench")


def too_long(root: Path) -> list[str]:
    """Name each file over the ceiling with its length."""
    found: list[str] = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > CEILING:
                found.append(f"{path.relative_to(root)}: {lines} lines")
    return found


def main() -> int:
    found = too_long(Path.cwd())
    sys.stdout.write("\n".join(found) + "\n" if found else f"no file over {CEILING} lines\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
