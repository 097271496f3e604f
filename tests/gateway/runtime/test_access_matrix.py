"""Everybody, everywhere, in every way: what is taken at the entrance, obeyed, and decided."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.message import CommandGiven, InboundEvent, InboundMessage
from gateway.runtime.access import Access
from gateway.runtime.access_door import Door, GroupRules
from gateway.runtime.config import AccessConfig, PersonRole, RateConfig
from store import open_store
from tests.fakes.entrance import entrance
from tests.fakes.loopback import command, message, press
from tests.fakes.questions import asked_by
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

UNHURRIED = RateConfig(user_per_minute=0, chat_per_minute=0)
PEOPLE = {
    "admin": Actor(platform="loop", id="9"),
    "listed": Actor(platform="loop", id="1"),
    "paired": Actor(platform="loop", id="2"),
    "guest": Actor(platform="loop", id="5"),
    "stranger": Actor(platform="loop", id="3"),
    "bot": Actor(platform="loop", id="1", is_bot=True),
}
PLACES = {
    "direct": Place(platform="loop", chat="1", chat_type=ChatType.DM),
    "our group": Place(platform="loop", chat="-5", chat_type=ChatType.GROUP),
    "our thread": Place(platform="loop", chat="-5", chat_type=ChatType.TOPIC, thread="7"),
    "followed": Place(platform="loop", chat="-5", chat_type=ChatType.TOPIC, thread="8"),
    "other group": Place(platform="loop", chat="-6", chat_type=ChatType.GROUP),
    "other thread": Place(platform="loop", chat="-6", chat_type=ChatType.TOPIC, thread="7"),
}

# m: a message, c: a command, M and C: the same calling the bot by its name.
TAKEN = """
              direct  our group  our thread  followed  other group  other thread
    admin     mMcC    .McC       .McC        mMcC      .McC         .McC
    listed    mMcC    .McC       .McC        mMcC      .McC         .McC
    paired    mMcC    .McC       .McC        mMcC      ....         ....
    guest     mMcC    .McC       .McC        mMcC      .McC         .McC
    stranger  ....    .McC       .McC        mMcC      ....         ....
    bot       ....    ....       ....        ....      ....         ....
"""
# s: /status, r: /reload-mcp.
OBEYED = """
              direct  our group  our thread  followed  other group  other thread
    admin     sr      sr         sr          sr        sr           sr
    listed    s.      s.         s.          s.        s.           s.
    paired    s.      s.         s.          s.        ..           ..
    guest     ..      ..         ..          ..        ..           ..
    stranger  ..      s.         s.          s.        ..           ..
    bot       ..      ..         ..          ..        ..           ..
"""
# o: what they asked for themselves, a: what somebody else asked for, g: a rule for ever.
DECIDED = """
              direct  our group  our thread  followed  other group  other thread
    admin     oag     oag        oag         oag       oag          oag
    listed    o..     o..        o..         o..       o..          o..
    paired    o..     o..        o..         o..       ...          ...
    guest     o..     o..        o..         o..       o..          o..
    stranger  ...     o..        o..         o..       ...          ...
    bot       ...     ...        ...         ...       ...          ...
"""


def cells(table: str) -> dict[tuple[str, str], str]:
    """Read a table by person and place."""
    _, *lines = table.strip().splitlines()
    return {
        (name, place): cell
        for name, *row in (line.split() for line in lines)
        for place, cell in zip(PLACES, row, strict=True)
    }


def access() -> Access:
    found = Access(
        AccessConfig(
            admins=frozenset({"loop:9"}),
            roles={PersonRole.GUEST: frozenset({"loop:5"})},
        ),
        doors={("loop", ""): Door(people=frozenset({"1"}), groups={"-5": GroupRules()})},
    )
    found.let_in("loop", "", "2")
    return found


def events(who: Actor, where: Place) -> Iterator[tuple[str, InboundMessage | CommandGiven]]:
    for named in (False, True):
        said = message("hi", n=1, place=where, sender=who)
        told = command("status", n=2, place=where, sender=who)
        yield "mM"[named], replace(said, mentions_us=named)
        yield "cC"[named], replace(told, mentions_us=named)


def test_the_tables_name_everybody_and_every_place() -> None:
    for table in (TAKEN, OBEYED, DECIDED):
        assert set(cells(table)) == {(who, where) for who in PEOPLE for where in PLACES}


@requirement("access.admission", "access.mention.default", "access.mention.threads",
             "access.strangers_silence", "access.bots.never_loop")  # fmt: skip
async def test_exactly_these_are_taken_at_the_entrance(tmp_path: Path) -> None:
    found: dict[tuple[str, str], str] = {}
    async with open_store(tmp_path / "state.db", clock=ManualClock()) as opened:
        gate = entrance(opened, access(), ManualClock(), rate=UNHURRIED)
        invitation = message("come in", n=0, place=PLACES["followed"], sender=PEOPLE["listed"])
        assert await gate.judge(replace(invitation, mentions_us=True)) is not None
        for name, who in PEOPLE.items():
            for place, where in PLACES.items():
                taken: set[str] = set()
                for mark, event in events(who, where):
                    if place.endswith("thread") and event.mentions_us:
                        # It invites us, so that the next one would be heard there as well.
                        event = replace(event, place=replace(where, thread=f"of {name}"))
                    if await gate.judge(event) is not None:
                        taken.add(mark)
                found[name, place] = "".join(m if m in taken else "." for m in "mMcC")

    assert found == cells(TAKEN)


@requirement("case.t1", "threat.s1")
async def test_every_press_is_taken_and_judged_by_its_card(tmp_path: Path) -> None:
    async with open_store(tmp_path / "state.db", clock=ManualClock()) as opened:
        gate = entrance(opened, access(), ManualClock(), rate=RateConfig())
        presses: list[InboundEvent] = [
            press("a" * 22, n=n, place=where, sender=who)
            for n, (who, where) in enumerate(
                (who, where) for who in PEOPLE.values() for where in PLACES.values()
            )
        ]
        assert all([await gate.judge(event) is not None for event in presses])


@requirement("access.rules.first_match", "access.guest")
def test_exactly_these_commands_are_obeyed() -> None:
    rules = access()
    found = {
        (name, place): "".join(
            mark if rules.may_command(who, said, place=where) else "."
            for mark, said in (("s", "status"), ("r", "reload-mcp"))
        )
        for name, who in PEOPLE.items()
        for place, where in PLACES.items()
    }
    assert found == cells(OBEYED)


@requirement("threat.s1", "approval.decide.approvers")
def test_exactly_these_may_decide() -> None:
    rules = access()
    somebody = Actor(platform="loop", id="4711")

    def marks(who: Actor, where: Place) -> str:
        own = rules.may_decide(asked_by(who, where), who)
        of_another = rules.may_decide(asked_by(somebody, where), who)
        for_ever = rules.may_grant_always(who)
        allowed = zip("oag", (own, of_another, for_ever), strict=True)
        return "".join(mark if may else "." for mark, may in allowed)

    found = {
        (name, place): marks(who, where)
        for name, who in PEOPLE.items()
        for place, where in PLACES.items()
    }
    assert found == cells(DECIDED)
