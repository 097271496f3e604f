"""That the benches of the running gateway measure what they say; what they find is theirs to tell."""

import asyncio
import os
from pathlib import Path

from bench import idle, parked, press, telegram_turn
from tests.support.requirement import requirement

MUCH_MS = 60_000.0
"""Far above every goal: here it only matters that a time is one of something that happened."""


@requirement("numbers.turn_cost")
def test_a_turn_is_timed_on_telegram_and_with_nothing_but_the_libraries() -> None:
    sides = asyncio.run(telegram_turn.measure(blocks=2, people=2))

    for side in (sides.gateway, sides.libraries, sides.http):
        assert [len(block) for block in side.blocks] == [2, 2]
        assert all(0 < ms < MUCH_MS for ms in side.all)
    # What is more than the libraries is our own: it cannot be nothing.
    assert min(sides.gateway.all) > min(sides.http.all)


def test_a_press_is_timed_until_its_tool_starts(tmp_path: Path) -> None:
    ours, bare = asyncio.run(press.measure(tmp_path, blocks=1, presses=2, warm_up=1))

    for side in (ours, bare):
        assert len(side.all) == 2
        assert all(0 < ms < MUCH_MS for ms in side.all)
        # Each of the three pressed for a run of her own.
        assert side.ran == [chat.id for chat in side.bot.chats]


@requirement("case.t13")
def test_turns_are_timed_beside_a_chat_that_must_wait_and_is_left_alone() -> None:
    waiting, free, refused = asyncio.run(parked.measure(blocks=1, people=2))

    for gateway in (waiting, free):
        assert len(gateway.side.all) == 2
        assert all(0 < ms < MUCH_MS for ms in gateway.side.all)
    assert refused == 1
    assert waiting.first.replies == []


def test_an_idle_gateway_is_watched_beside_its_floors() -> None:
    found = asyncio.run(idle.measure(idle.KINDS[:1], settle=0, seconds=0.5))

    assert list(found) == [idle.KINDS[0].name, idle.BARE_BOT]
    for ours, floor in found.values():
        assert ours.memory > floor.memory > 10
        assert 0 <= floor.cpu <= 100 * (os.cpu_count() or 1)


def test_the_time_of_a_process_is_that_of_all_its_threads() -> None:
    before = idle.seconds_of(os.getpid())

    sum(range(2_000_000))

    assert idle.seconds_of(os.getpid()) > before
    assert idle.memory_of(os.getpid()) > 10
