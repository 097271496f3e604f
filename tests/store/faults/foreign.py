"""Another program that uses the database file without asking us, as a shell or a backup tool does.

`python -m tests.store.faults.foreign lock PATH` holds the write lock until its input ends;
`… visit PATH` opens the file for writing, reads once and closes it.
"""

import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path


def visit(path: Path) -> None:
    """Open, read, close, in a process of its own."""
    subprocess.run(_command("visit", path), check=True, timeout=30)


@contextmanager
def lock_held(path: Path) -> Generator[None]:
    """Hold the write lock in a process of its own."""
    with subprocess.Popen(
        _command("lock", path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        try:
            yield
        finally:
            process.stdin.close()


def _command(what: str, path: Path) -> list[str]:
    return [sys.executable, "-m", "tests.store.faults.foreign", what, str(path)]


def main() -> None:
    what, path = sys.argv[1:]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if what == "visit":
            connection.execute("SELECT count(*) FROM message").fetchone()
            return
        connection.execute("BEGIN IMMEDIATE")
        sys.stdout.write("locked\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
