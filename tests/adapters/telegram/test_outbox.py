"""The outbox over a real store, emptied through the adapter while Telegram makes trouble."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.telegram.adapter import TelegramAdapter, open_telegram
from adapters.telegram.markup import TelegramRenderer
from gateway.domain.delivery import Origin
from gateway.domain.ids import Place
from gateway.domain.operations.deliveries import Enqueue
from gateway.runtime.delivery import FIRST_WAIT_SECONDS, JITTER, DeliveryLoop
from gateway.runtime.no_media import NoMedia
from gateway.runtime.wakeups import Wakeups
from store import OpenStore, open_store
from tests.adapters.telegram.rig import TOKEN, Inbox, account, dm, group, unhurried
from tests.fakes.clock import HastyClock
from tests.fakes.house import rows
from tests.fakes.telegram import Fault, Town, Trouble, flood, refuse
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

RENDERER = TelegramRenderer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    path: Path
    opened: OpenStore
    adapter: TelegramAdapter
    wakeups: Wakeups

    async def put(self, place: Place, *texts: str) -> None:
        for text in texts:
            key = f"{place.chat}:{text}"
            await self.opened.store.enqueue(
                Enqueue(place=place, group_key=key, parts=RENDERER.text(text), origin=Origin.SEND)
            )
        self.wakeups.deliveries()

    def rows(self) -> list[tuple[Any, ...]]:
        """Return state, attempts, next time in ms, marks and error of every delivery."""
        query = "SELECT state, attempts, next_at, marks, last_error FROM delivery ORDER BY id"
        return rows(self.path, query)

    async def until_all(self, *states: str) -> None:
        await eventually_async(lambda: {row[0] for row in self.rows()} <= set(states))


@asynccontextmanager
async def posting(
    home: Path, town: Town, clock: ManualClock, *, send_seconds: float = 60
) -> AsyncGenerator[Post]:
    """Run the outbox of one account until the block ends; twice on a home is a restart."""
    path = home / "state.db"
    async with (
        open_store(path, clock=clock) as opened,
        open_telegram(
            account(town),
            sent=opened.readers.sent,
            chats=opened.store,
            media=NoMedia(),
            clock=clock,
        ) as adapter,
        asyncio.TaskGroup() as tasks,
    ):
        await opened.store.recover(worker="test")
        wakeups = Wakeups()
        loop = DeliveryLoop(
            adapter=adapter,
            store=opened.store,
            deliveries=opened.readers.deliveries,
            wakeups=wakeups,
            clock=clock,
            worker="test",
            send_seconds=send_seconds,
        )
        polls = town.count("getUpdates")
        running = [tasks.create_task(adapter.run(Inbox())), tasks.create_task(loop.run())]
        await town.until(lambda: town.count("getUpdates") > polls, what="the first poll")
        yield Post(path=path, opened=opened, adapter=adapter, wakeups=wakeups)
        for task in running:
            task.cancel()


def texts_sent(town: Town, chat: int) -> list[tuple[str, int]]:
    return [(c.values["text"], c.status) for c in town.called("sendMessage", chat=chat)]


# --- asked to wait ------------------------------------------------------------------


@requirement("fault.f21", "case.t13")
@pytest.mark.parametrize("seconds", [1, 30, 1_000, 3_600])
async def test_a_chat_waits_its_time_in_order_also_across_a_restart_and_others_do_not(
    tmp_path: Path, seconds: int
) -> None:
    clock = ManualClock()
    async with unhurried() as town:
        ana = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        ben = town.private(town.user(222, "Ben"), bot=town.bot(TOKEN))
        town.fail(flood("sendMessage", seconds, chat=111))
        async with posting(tmp_path, town, clock) as post:
            await post.put(dm(111), "one", "two")
            await post.put(dm(222), "other")
            await ben.wait_for_reply("other")
            await town.until(lambda: town.count("sendMessage", chat=111))
            await eventually_async(
                lambda: [row[0] for row in post.rows()] == ["ready", "ready", "sent"]
            )
            await post.adapter.show_typing(dm(111))
        async with posting(tmp_path, town, clock) as post:
            await post.put(dm(111), "three")
            clock.advance(seconds - 0.5)
            await post.put(dm(222), "meanwhile")
            await ben.wait_for_reply("meanwhile")
            await post.adapter.show_typing(dm(111))
            assert texts_sent(town, 111) == [("one", 429)]
            assert town.count("sendChatAction", chat=111) == 0

            clock.advance(0.5)
            post.wakeups.deliveries()
            await ana.wait_for_reply("three")

    assert ana.texts == ["one", "two", "three"]
    assert ben.texts == ["other", "meanwhile"]


# --- no answer, or a bad one --------------------------------------------------------


@requirement("fault.f22")
async def test_five_errors_of_the_service_are_waited_out_longer_each_time_and_nothing_is_doubled(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    pauses: list[float] = []
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with posting(tmp_path, town, clock) as post:
            await post.put(dm(), "before")
            await chat.wait_for_reply("before")
            town.fail(refuse("sendMessage", 500, "Internal Server Error", times=5))
            await post.put(dm(), "one", "two")
            for failures in range(1, 6):
                await eventually_async(
                    lambda failures=failures: post.rows()[1][:2] == ("ready", failures)
                )
                pauses.append(post.rows()[1][2] / 1000 - clock.now().timestamp())
                clock.advance(pauses[-1])
                post.wakeups.deliveries()
            await chat.wait_for_reply("two")

    assert chat.texts == ["before", "one", "two"]
    assert [status for _, status in texts_sent(town, 111)] == [200, *[500] * 5, 200, 200]
    for number, pause in enumerate(pauses):
        least = FIRST_WAIT_SECONDS * 2**number
        assert least <= pause < least * (1 + JITTER) + 0.01
    # Spread at random: they are not all the exact double of the one before.
    assert any(abs(b - 2 * a) > 0.002 for a, b in itertools.pairwise(pauses))


@requirement("fault.f22")
@pytest.mark.parametrize(
    "trouble", [Trouble.HANG_AFTER, Trouble.HANG_BEFORE, Trouble.CUT_AFTER, Trouble.CUT_BEFORE]
)
async def test_a_send_whose_answer_does_not_come_is_shown_once_and_without_a_mark(
    tmp_path: Path, trouble: Trouble
) -> None:
    async with unhurried() as town:
        chat = town.private(town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with posting(tmp_path, town, HastyClock(), send_seconds=0.5) as post:
            await post.put(dm(), "before")
            await chat.wait_for_reply("before")
            town.fail(Fault(trouble=trouble, method="sendMessage"))
            await post.put(dm(), "one", "two")
            await chat.wait_for_reply("two")
            await post.until_all("sent")

            assert {row[3] for row in post.rows()} == {""}
        town.heal()
    assert chat.texts == ["before", "one", "two"]


# --- never again --------------------------------------------------------------------


@requirement("fault.f23")
@pytest.mark.parametrize("kind", ["blocked", "kicked"])
async def test_a_bot_that_is_not_wanted_gives_up_at_once_and_never_tries_again(
    tmp_path: Path, kind: str
) -> None:
    clock = HastyClock()
    async with unhurried() as town:
        ana = town.user(111, "Ana")
        if kind == "blocked":
            chat, place = town.private(ana, bot=town.bot(TOKEN)), dm()
            await chat.block()
        else:
            chat = town.supergroup("Team", ana, bot=town.bot(TOKEN))
            place = group(chat.id)
            await chat.set_bot("kicked")
        async with posting(tmp_path, town, clock) as post:
            await post.put(place, "one")
            await post.until_all("dead")
            ((state, attempts, _, _, error),) = post.rows()
            assert (state, attempts) == ("dead", 1)
            assert kind in error
        async with posting(tmp_path, town, clock) as post:
            other = town.private(town.user(222, "Ben"), bot=town.bot(TOKEN))
            await post.put(dm(222), "other")
            await other.wait_for_reply("other")

    assert town.count("sendMessage", chat=chat.id) == 1


@requirement("fault.f23")
async def test_what_was_for_a_group_goes_to_the_id_it_moved_to(tmp_path: Path) -> None:
    async with unhurried() as town:
        chat = town.group("Team", town.user(111, "Ana"), bot=town.bot(TOKEN))
        async with posting(tmp_path, town, HastyClock()) as post:
            await post.put(group(chat.id), "before")
            await chat.wait_for_reply("before")
            moved = await chat.migrate()
            await post.put(group(chat.id), "one", "two")
            await moved.wait_for_reply("two")
            await post.until_all("sent")

    assert chat.texts == ["before"]
    assert moved.texts == ["one", "two"]
