import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.writer import place_of
from gateway.domain.conversation import Role
from gateway.domain.ids import ChatType, Cursor, Place
from gateway.domain.operations.inbound import Lane
from store.readers import open_readers
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


def run(module: str, *arguments: str, text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{module}", *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@requirement("design.bench_tools")
async def test_the_seed_fills_a_home_with_settled_conversations(tmp_path: Path) -> None:
    home = tmp_path / "home"

    run("seed", "--home", str(home), "--conversations", "3", "--messages", "5")

    async with open_readers(home / "state.db", clock=ManualClock()) as readers:
        page = await readers.ports.conversations.page(limit=10)
        assert sorted(view.session_key for view in page.conversations) == [
            f"agent:main:telegram:dm:{100_000 + number}" for number in range(3)
        ]
        for view in page.conversations:
            messages = await readers.ports.conversations.messages(view.session, limit=10)
            assert [message.role for message in messages] == [
                Role.USER,
                Role.ASSISTANT,
                Role.USER,
                Role.ASSISTANT,
                Role.USER,
            ]
            assert await readers.ports.inbox.waiting(view.place) == 0
        events = await readers.ports.events.after(Cursor(1), limit=100)
        assert len(events.events) == 15


@requirement("design.bench_tools")
async def test_the_writer_accepts_each_line_and_says_when_it_was_committed(
    tmp_path: Path,
) -> None:
    key = "agent:main:telegram:dm:100001"
    lines = [json.dumps({"session_key": key, "text": text}) for text in ("one", "two")]
    before = time.perf_counter()

    printed = run("writer", "--home", str(tmp_path), text="\n".join(lines) + "\n")

    times = [json.loads(line)["t"] for line in printed.splitlines()]
    assert before < times[0] < times[1] < time.perf_counter()
    async with open_readers(tmp_path / "state.db", clock=ManualClock()) as readers:
        view = await readers.ports.conversations.find(key)
        assert view is not None
        messages = await readers.ports.conversations.messages(view.session, limit=10)
        assert [message.text for message in messages] == ["one", "two"]
        assert await readers.ports.inbox.waiting(view.place) == 2, f"lane {Lane.TURN}, as intake"


@pytest.mark.parametrize(
    "place",
    [
        Place(platform="telegram", chat="1", chat_type=ChatType.DM),
        Place(platform="telegram", account="w", chat="-1", chat_type=ChatType.TOPIC, thread="9"),
        Place(platform="slack", chat="C:1%", chat_type=ChatType.GROUP, participant="U1"),
    ],
)
def test_the_writer_understands_every_session_key(place: Place) -> None:
    assert place_of(place.session_key) == place


@pytest.mark.parametrize("key", ["", "x", "agent:main:telegram:dm", "agent:main:telegram:no:1"])
def test_the_writer_refuses_what_is_no_session_key(key: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        place_of(key)
