"""Fills the store of a home through the store's own API: settled conversations, nothing to do.

N direct chats on telegram with the keys `agent:main:telegram:dm:<100000+i>`, M messages in each, by
turns the person's and the agent's. Prints one line of JSON. `python -m bench.seed --help`.
"""

import argparse
import asyncio
import json
import random
import time
from pathlib import Path
from typing import Final

from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.message import InboundMessage
from gateway.domain.operations.inbound import Accept, Lane
from gateway.domain.operations.turns import CommitTurn, TurnEnd
from gateway.ports import Store
from gateway.runtime.clock import SystemClock
from store import open_store
from store.lock import hold_home

FIRST_CHAT: Final = 100_000
TOGETHER: Final = 200
"""Conversations worked on at the same time, so that they share commits."""
WORDS: Final = ("deploy", "rollback", "invoice", "ticket", "latency", "review", "budget", "queue")
WORDS_PER_MESSAGE: Final = 40


class Seeder:
    """Writes messages with the same words on every run."""

    def __init__(self, store: Store, clock: SystemClock) -> None:
        self._store = store
        self._clock = clock
        self._random = random.Random(7)

    async def fill(self, *, conversations: int, messages: int) -> None:
        """Write the conversations, each message in a commit that others share."""
        for start in range(0, conversations, TOGETHER):
            chats = range(start, min(start + TOGETHER, conversations))
            for number in range(0, messages, 2):
                await self._round(chats, number, answered=number + 1 < messages)

    async def _round(self, chats: range, number: int, *, answered: bool) -> None:
        async with asyncio.TaskGroup() as tasks:
            for chat in chats:
                tasks.create_task(self._say(chat, number), name=f"say:{chat}")
        async with asyncio.TaskGroup() as tasks:
            for chat in chats:
                # Which conversation a claim gives does not matter: all get one answer.
                tasks.create_task(self._answer(answered=answered), name=f"answer:{chat}")

    async def _say(self, chat: int, number: int) -> None:
        person = str(FIRST_CHAT + chat)
        event = InboundMessage(
            place=Place(platform="telegram", chat=person, chat_type=ChatType.DM),
            native_id=f"seed-{number}",
            dedupe=f"telegram::seed-{person}-{number}",
            sender=Actor(platform="telegram", id=person, name=f"User {chat}"),
            sent_at=self._clock.now(),
            text=self._text(),
        )
        await self._store.accept(Accept(event=event, lane=Lane.TURN))

    async def _answer(self, *, answered: bool) -> None:
        claim = await self._store.claim_turn(worker="bench.seed")
        if claim is None:
            return
        await self._store.commit_turn(
            CommitTurn(
                conversation=claim.conversation,
                turn=claim.turn,
                fence=claim.fence,
                end=TurnEnd.DONE,
                reply=self._text() if answered else "",
                parts=(),
            )
        )

    def _text(self) -> str:
        return " ".join(self._random.choices(WORDS, k=WORDS_PER_MESSAGE))


async def seed(home: Path, *, conversations: int, messages: int) -> None:
    """Fill the home's store; the home must not be in use."""
    clock = SystemClock()
    async with open_store(home / "state.db", clock=clock) as opened:
        await Seeder(opened.store, clock).fill(conversations=conversations, messages=messages)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.seed", description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--conversations", type=int, required=True)
    parser.add_argument("--messages", type=int, required=True, help="in each conversation")
    given = parser.parse_args()
    home: Path = given.home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    start = time.perf_counter()
    with hold_home(home):
        asyncio.run(seed(home, conversations=given.conversations, messages=given.messages))
    report = {
        "conversations": given.conversations,
        "messages": given.conversations * given.messages,
        "seconds": round(time.perf_counter() - start, 1),
        "bytes": (home / "state.db").stat().st_size,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
