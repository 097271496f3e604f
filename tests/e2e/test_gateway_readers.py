"""Other processes read the database of a running gateway, and nothing is lost by it."""

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.house import House
from tests.e2e.on_telegram import ANNA, configure, telegram_with_anna
from tests.fakes.telegram.process import TelegramProcess
from tests.support.chat import environment, hermes
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

READ: Final = """
import asyncio, json, pathlib, sys
from gateway.runtime.clock import SystemClock
from store.readers import open_readers

async def main():
    async with open_readers(pathlib.Path(sys.argv[1]), clock=SystemClock()) as readers:
        (chat,) = (await readers.ports.conversations.page(limit=10)).conversations
        messages = await readers.ports.conversations.messages(chat.session, limit=100)
        print(json.dumps([message.text for message in messages]))

asyncio.run(main())
"""


@pytest.fixture
def town() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        yield running


def read(home: Path) -> list[str]:
    """Return the texts of the chat as a process of its own sees them; it has ended then."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(home / "state.db")],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: list[str] = json.loads(done.stdout)
    return found


def log_files(home: Path) -> dict[str, int]:
    """Return the files that hold what is not in the database itself yet, by their inodes."""
    return {name: (home / name).stat().st_ino for name in ("state.db-wal", "state.db-shm")}


def said(town: TelegramProcess, text: str) -> None:
    message: dict[str, Any] = town.do("say", chat=ANNA, text=text)
    town.do("wait", chat=ANNA, after=message["id"])


@requirement("case.db5")
def test_a_process_that_reads_and_ends_takes_nothing_from_the_gateway(
    house: House, town: TelegramProcess
) -> None:
    house.serve()
    configure(house, town)
    with Gateway(house.path) as gateway:
        said(town, "before")
        files = log_files(house.path)
        seen = read(house.path)
        for command in (("gateway", "status"), ("approvals", "list", "--all")):
            assert hermes(house.path, *command).returncode == 0

        assert log_files(house.path) == files
        said(town, "after")
        assert (seen[0], len(seen)) == ("before", 2)
        assert read(house.path)[::2] == ["before", "after"]
        assert gateway.end() == 0

    # The gateway itself saw all of it: what it put into the database is the same.
    assert read(house.path)[::2] == ["before", "after"]
