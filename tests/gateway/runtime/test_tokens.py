"""A thousand presses with tokens that mean nothing here: not one of them changes anything."""

import asyncio
import base64
import random
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from gateway.domain.operations.turns import Claim
from gateway.ports import Approval
from gateway.runtime.expiry import Expiry
from tests.fakes.house import rows
from tests.fakes.tools import tool
from tests.support.people import ANNA, BEN, GROUP, People, dm, limit, people, token
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

Asked: TypeAlias = asyncio.Task[Approval]
NOTE: Final = tool("add_note")
EACH: Final = 200
LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
CHANGES: Final = (
    "SELECT id, state, decision, decided_by, decided_at, consumed_at FROM question ORDER BY id",
    "SELECT * FROM standing_rule",
    "SELECT turn_id, n, state, result FROM step ORDER BY turn_id, n",
    "SELECT token, used_at, used_by FROM button ORDER BY token",
    "SELECT * FROM vote WHERE outcome = 'counted'",
)


def state(path: Path) -> list[list[tuple[Any, ...]]]:
    """Return everything that a press could change."""
    return [rows(path, statement) for statement in CHANGES]


def forged() -> Iterator[str]:
    for _ in range(EACH // 2):
        yield secrets.token_urlsafe(16)
    for number in range(EACH // 2):
        yield base64.b64encode(secrets.token_bytes(number % 49)).decode()[:64]


def flipped(known: str) -> Iterator[str]:
    """Return the neighbours of a token that works: one letter of it is another."""
    for number in range(EACH):
        at = number % len(known)
        other = LETTERS[(LETTERS.index(known[at]) + 1 + number // len(known)) % len(LETTERS)]
        yield known[:at] + other + known[at + 1 :]


async def asked(chat: People, claim: Claim, *, step: int = 1) -> tuple[str, Asked]:
    """Have a call wait for its approval; return the token that would allow it, and the wait."""
    call = await chat.call(claim=claim, step=step)

    async def ask() -> Approval:
        async with limit() as deadline:
            return await chat.broker.approve(call, NOTE, deadline=deadline)

    waiting = chat.tasks.create_task(ask(), name="ask")
    return token(await chat.card(), "Allow once"), waiting


@requirement("threat.s2", "threat.s3", "threat.s4")
async def test_forged_flipped_replayed_foreign_and_expired_tokens_change_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    async with people(path) as chat:
        alone = await chat.turn(place=dm(ANNA))
        old, expired = await asked(chat, alone)
        chat.clock.advance(300)
        await Expiry(chat.readers.questions, chat.decisions, chat.clock).sweep()
        assert not (await expired).allowed
        here = await chat.turn()
        used, allowed = await asked(chat, here)
        await chat.press(used)
        assert (await allowed).allowed
        foreign, elsewhere = await asked(chat, await chat.turn(place=dm(BEN), sender=BEN))
        open_here, waiting = await asked(chat, here, step=2)
        before = state(path)

        tried = [
            *forged(),
            *flipped(open_here),
            *[used] * EACH,
            *[foreign] * EACH,
            *[old] * EACH,
        ]
        random.shuffle(tried)
        assert len(tried) == 1_000
        for item in tried:
            await chat.press(item, place=dm(ANNA) if item == old else GROUP)

        assert state(path) == before
        assert not waiting.done()
        assert not elsewhere.done()
        await chat.press(open_here)
        assert (await waiting).allowed
        await chat.press(foreign, by=BEN, place=dm(BEN))
        assert (await elsewhere).allowed
