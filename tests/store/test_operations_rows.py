"""What operations leave in rows that no read port shows: votes, presses, cursors, servers, tools."""

import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from gateway.domain.ids import ChatType, Place
from gateway.domain.operations.inbound import Accepted, Duplicate, MigrateChat
from gateway.domain.operations.questions import AnswerField, ExpireDue, RefuseAttempt, Why
from gateway.domain.operations.upkeep import Prune, PutServer, SetHome
from gateway.domain.question import Action, Surface
from gateway.domain.tools import ServerState
from store import OpenStore, open_store
from tests.contracts.values import (
    ANNA,
    BEN,
    HOME,
    ask,
    button,
    commit,
    decide,
    edit,
    message,
    planned,
    question,
    record,
)
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio

Look: TypeAlias = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
async def opened(tmp_path: Path, clock: ManualClock) -> AsyncGenerator[OpenStore]:
    async with open_store(tmp_path / "state.db", clock=clock) as store:
        yield store


@pytest.fixture
def look(tmp_path: Path) -> Look:
    def rows(sql: str) -> list[tuple[Any, ...]]:
        uri = f"file:{tmp_path / 'state.db'}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            return database.execute(sql).fetchall()

    return rows


async def test_every_attempt_to_decide_leaves_a_vote(
    opened: OpenStore, look: Look, clock: ManualClock
) -> None:
    asked = await opened.store.ask(ask(question(1, quorum=2)))
    other = await opened.store.ask(ask(question(2)))
    await opened.store.decide(decide(asked))
    await opened.store.decide(decide(asked))
    await opened.store.decide(decide(asked, Action.SUBMIT, by=BEN))
    await opened.store.decide(decide(asked, by=BEN, args_sha="other"))
    await opened.store.refuse(
        RefuseAttempt(
            question=asked.id,
            actor=BEN,
            surface=Surface.COMMAND,
            action=Action.DENY,
            why=Why.NOT_ALLOWED,
        )
    )
    await opened.store.decide(decide(asked, by=BEN))
    await opened.store.decide(decide(asked, by=BEN))
    clock.advance(400)
    await opened.store.decide(decide(other))

    assert look("SELECT outcome, actor FROM vote ORDER BY id") == [
        ("counted", "telegram:1"),
        ("repeated", "telegram:1"),
        ("not_offered", "telegram:2"),
        ("changed", "telegram:2"),
        ("not_allowed", "telegram:2"),
        ("counted", "telegram:2"),
        ("late", "telegram:2"),
        ("expired", "telegram:1"),
    ]


async def test_a_button_is_used_only_by_the_press_that_takes_effect(
    opened: OpenStore, look: Look
) -> None:
    asked = await opened.store.ask(
        ask(question(quorum=2), buttons=(button("allow"), button("deny", Action.DENY)))
    )

    await opened.store.decide(decide(asked, token="allow"))
    unused = look("SELECT count(*) FROM button WHERE used_at IS NOT NULL")
    await opened.store.decide(decide(asked, by=BEN, token="allow"))
    await opened.store.decide(decide(asked, Action.DENY, by=BEN, token="deny"))

    assert unused == [(0,)]
    assert look("SELECT token, used_by FROM button WHERE used_at IS NOT NULL") == [
        ("allow", "telegram:2")
    ]


async def test_a_stale_answer_uses_no_button(opened: OpenStore, look: Look) -> None:
    asked = await opened.store.ask(ask(question(), field="a", buttons=(button("t0"),)))
    answer = AnswerField(question=asked.id, rev=0, field="a", value=1, next="", card=edit())

    await opened.store.answer_field(replace(answer, rev=7, token="t0"))
    unused = look("SELECT count(*) FROM button WHERE used_at IS NOT NULL")
    await opened.store.answer_field(replace(answer, token="t0", actor=ANNA))

    assert unused == [(0,)]
    assert look("SELECT used_by FROM button") == [("telegram:1",)]


async def test_the_cursor_of_a_platform_moves_with_what_it_covers(
    opened: OpenStore, look: Look
) -> None:
    first = await opened.store.accept(message("1", native_id="1", position=("offset", "1")))
    again = await opened.store.accept(message("1", native_id="1", position=("offset", "2")))

    assert isinstance(first, Accepted)
    assert isinstance(again, Duplicate)
    assert look("SELECT platform, name, value FROM platform_cursor") == [
        ("telegram", "offset", "2")
    ]


async def test_the_end_of_a_turn_leaves_no_step_and_no_input_open(
    opened: OpenStore, look: Look
) -> None:
    await opened.store.accept(message("go"))
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    await opened.store.record_steps(record(claim, planned=(planned(1), planned(2))))

    await opened.store.commit_turn(commit(claim))

    assert look("SELECT DISTINCT state FROM step") == [("error",)]
    assert look("SELECT state FROM inbound") == [("done",)]
    assert look("SELECT lease_owner, ready_at FROM conversation") == [(None, None)]


async def test_an_expired_question_keeps_who_did_it(
    opened: OpenStore, look: Look, clock: ManualClock
) -> None:
    asked = await opened.store.ask(ask(question()))
    clock.advance(300)

    await opened.store.expire_due(ExpireDue(questions={asked.id: None}))

    assert look("SELECT state, decision, decided_by, decided_via FROM question") == [
        ("expired", "timeout", None, "timeout")
    ]


async def test_the_time_of_a_state_moves_only_with_the_state(
    opened: OpenStore, look: Look, clock: ManualClock
) -> None:
    server = PutServer(name="notes", config_sha="c", server_sha="s", state=ServerState.READY)
    await opened.store.put_server(replace(server, elicits=True, era="discover"))
    (since,) = look("SELECT since, elicits FROM mcp_server")
    clock.advance(10)

    await opened.store.put_server(server)

    assert look("SELECT since, elicits FROM mcp_server") == [since]
    assert look("SELECT elicits, era FROM mcp_server") == [(1, "discover")]
    await opened.store.put_server(replace(server, state=ServerState.PARKED, reason="gone"))
    ((later,),) = look("SELECT since FROM mcp_server")
    assert later == since[0] + 10_000


async def test_media_of_open_work_and_young_media_are_kept(
    opened: OpenStore, tmp_path: Path, clock: ManualClock
) -> None:
    await opened.store.accept(message("a"))
    await opened.store.accept(message("b", place=replace(HOME, chat="2")))
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    await opened.store.commit_turn(commit(claim, ""))
    # What a download writes; no operation of this store does it yet.
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as database:
        database.execute("PRAGMA wal_autocheckpoint = 0")
        for number, path in ((1, "answered"), (2, "open"), (1, "young")):
            at = 9_999_999_999_999 if path == "young" else 0
            database.execute(
                "INSERT INTO attachment (message_id, kind, path_key, state, created_at)"
                " VALUES (?, 'image', ?, 'stored', ?)",
                (number, path, at),
            )

    pruned = await opened.store.prune(Prune(media_before=clock.now() - timedelta(days=1)))

    assert pruned.media_paths == ("answered",)


async def test_a_migrated_chat_takes_its_home_and_its_name_along(
    opened: OpenStore, look: Look
) -> None:
    old = Place(platform="telegram", chat="-1", chat_type=ChatType.GROUP)
    await opened.store.accept(message("hi", place=old))
    await opened.store.set_home(SetHome(place=old, by=ANNA))

    await opened.store.migrate_chat(
        MigrateChat(platform="telegram", account="", old="-1", new="-100")
    )

    assert look("SELECT chat_key FROM home_channel") == [("-100",)]
    assert look("SELECT chat_key FROM directory") == [("-100",)]
    assert look("SELECT session_key FROM conversation_alias") == [(old.session_key,)]
