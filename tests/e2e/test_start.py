"""What one question of `hermes chat -q` loads before it is answered."""

import subprocess
import sys
from pathlib import Path

from tests.support.chat import environment

HEAVY = ("mcp", "sqlalchemy", "alembic", "pydantic_ai", "prompt_toolkit", "httpx")
ASK = f"""
import sys
from gateway.cli.main import main
sys.argv = ["hermes", "chat", "-q", "/whoami"]
try:
    main()
finally:
    print(*[name for name in {HEAVY} if name in sys.modules])
"""


def test_a_command_that_needs_no_server_ends_without_the_heavy_libraries(tmp_path: Path) -> None:
    first = ask(tmp_path)
    again = ask(tmp_path)

    assert "role **admin**" in again[0]
    assert (first[1:], again[1:]) == ([""], [""])


def ask(home: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
