"""What a store promises about recovery, retention and the small writes."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.domain.conversation import Channel
from gateway.domain.delivery import Later, Origin
from gateway.domain.ids import Actor, Cursor, RuleId
from gateway.domain.operations.deliveries import Enqueue
from gateway.domain.operations.upkeep import (
    AddAudit,
    PinTool,
    Prune,
    PutServer,
    PutTimer,
    Recovered,
    RevokeRule,
    SetHome,
    SetTitle,
)
from gateway.domain.question import Action, QuestionKind, Surface
from gateway.domain.tools import AgreedTool, ServerState, ToolSpec
from store import OpenStore
from tests.contracts.conftest import StoreFactory
from tests.contracts.values import (
    ANNA,
    GROUP,
    HOME,
    ask,
    commit,
    decide,
    message,
    question,
    sending,
    text,
)
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


async def test_recovery_frees_what_was_held_and_names_what_is_uncertain(
    opened: OpenStore,
) -> None:
    await opened.store.accept(message("go"))
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    approval = await opened.store.ask(ask(question(1, claim=claim, step=1)))
    elicited = await opened.store.ask(
        ask(question(2, claim=claim, step=1, kind=QuestionKind.ELICITATION))
    )
    loose = await opened.store.ask(ask(question(3)))
    out = await opened.store.claim_delivery(sending())
    assert out is not None

    first = await opened.store.recover(worker="w2")
    again = await opened.store.recover(worker="w2")

    expected = Recovered(turns=1, deliveries=(out.id,), questions=(elicited.id, loose.id))
    assert (first, again) == (expected, expected)
    assert approval.id not in first.questions
    resumed = await opened.store.claim_turn(worker="w2")
    assert resumed is not None
    assert resumed.turn == claim.turn
    assert await opened.store.claim_delivery(sending()) is None


@requirement("fault.f36")
async def test_what_a_process_whose_clock_was_ahead_left_is_not_waited_for(
    opened: OpenStore, clock: ManualClock
) -> None:
    await opened.store.accept(message("go"))
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    await opened.store.commit_turn(commit(claim))
    await opened.store.accept(message("more"))
    clock.advance(-3_600)
    assert await opened.store.claim_turn(worker="w") is None
    assert await opened.store.claim_delivery(sending()) is None

    await opened.store.recover(worker="w2")

    assert await opened.store.claim_turn(worker="w2") is not None
    assert await opened.store.claim_delivery(sending()) is not None


@requirement("case.t13")
async def test_a_chat_that_must_be_left_alone_is_so_after_a_restart(
    opened: OpenStore, clock: ManualClock
) -> None:
    await opened.store.accept(message("go"))
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    await opened.store.commit_turn(commit(claim))
    out = await opened.store.claim_delivery(sending())
    assert out is not None
    until = clock.now() + timedelta(seconds=1_000)
    await opened.store.mark_delivery(Later(id=out.id, at=until, error="flood", park_chat=True))

    await opened.store.recover(worker="w2")

    clock.advance(999)
    assert await opened.store.claim_delivery(sending()) is None
    clock.advance(1)
    assert await opened.store.claim_delivery(sending()) is not None


async def test_a_question_of_an_ended_turn_is_an_orphan(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    asked = await opened.store.ask(ask(question(claim=claim, step=1)))
    await opened.store.commit_turn(commit(claim))

    assert (await opened.store.recover(worker="w")).questions == (asked.id,)


async def test_pruning_events_is_a_gap_that_is_said_and_spares_the_newest(
    opened: OpenStore,
) -> None:
    for number in range(5):
        await opened.store.accept(message(f"{number}"))
    head = await opened.readers.events.head()

    some = await opened.store.prune(Prune(events_before=Cursor(3)))
    rest = await opened.store.prune(Prune(events_before=Cursor(10_000)))
    none = await opened.store.prune(Prune())

    page = await opened.readers.events.after(Cursor(2), limit=10)
    assert (some.events, rest.events, none.events) == (3, 2, 0)
    assert await opened.readers.events.head() == head
    assert [event.cursor for event in page.events] == [head]
    assert page.gap is not None
    assert page.gap.reason == "pruned"


async def test_a_home_channel_is_where_a_bare_platform_leads(opened: OpenStore) -> None:
    await opened.store.accept(message("hi", place=GROUP))
    before = await opened.readers.channels.resolve("telegram")

    await opened.store.set_home(SetHome(place=GROUP, by=ANNA))
    await opened.store.set_home(SetHome(place=HOME, by=ANNA))

    after = await opened.readers.channels.resolve("telegram")
    assert before is None
    assert isinstance(after, Channel)
    assert after.place == HOME


async def test_a_default_home_gives_way_to_one_that_a_person_chose(opened: OpenStore) -> None:
    config = Actor(platform="config", id=GROUP.platform)
    await opened.store.set_home(SetHome(place=GROUP, by=config, default=True))
    await opened.store.set_home(SetHome(place=HOME, by=config, default=True))
    assert await home_of(opened) == HOME.chat

    await opened.store.set_home(SetHome(place=GROUP, by=ANNA))
    await opened.store.set_home(SetHome(place=HOME, by=config, default=True))
    assert await home_of(opened) == GROUP.chat


async def home_of(opened: OpenStore) -> str:
    found = await opened.readers.channels.resolve(HOME.platform)
    assert isinstance(found, Channel)
    return found.place.chat


async def test_a_title_belongs_to_its_session(opened: OpenStore) -> None:
    await opened.store.accept(message("hi"))
    view = await opened.readers.conversations.find(HOME.session_key)
    assert view is not None

    await opened.store.set_title(SetTitle(session=view.session, title="Plans"))

    sessions = await opened.readers.conversations.sessions(view.id, limit=5)
    assert [item.title for item in sessions] == ["Plans"]


async def test_a_rule_ends_once(opened: OpenStore) -> None:
    asked = await opened.store.ask(ask(question()))
    await opened.store.decide(decide(asked, Action.ALLOW_SESSION))
    (rule,) = await opened.readers.rules.live()
    revoke = RevokeRule(rule=rule.id, by=ANNA)

    ended = await opened.store.revoke_rule(revoke)

    assert ended == rule
    assert await opened.store.revoke_rule(revoke) is None
    assert await opened.store.revoke_rule(RevokeRule(rule=RuleId(99), by=ANNA)) is None
    assert await opened.readers.rules.live() == ()


async def test_the_books_are_kept_in_order(opened: OpenStore) -> None:
    admin = Actor(platform="cli", id="1000")
    line = AddAudit(
        actor=admin,
        surface=Surface.CLI,
        action="revoke",
        subject="rule:1",
        detail={"tool": "add_note"},
    )

    await opened.store.add_audit(line)

    (read,) = await opened.readers.books.audit(limit=5)
    assert read == line


async def test_a_server_is_written_again_and_again(opened: OpenStore) -> None:
    for state in (ServerState.CONNECTING, ServerState.READY, ServerState.READY):
        await opened.store.put_server(
            PutServer(name="notes", config_sha="c", server_sha="s", state=state)
        )


@requirement("threat.s10")
async def test_a_tool_is_kept_as_it_was_last_allowed(opened: OpenStore) -> None:
    agreed = opened.readers.rules.agreed
    tool = ToolSpec(
        server="notes",
        name="add",
        alias="mcp__notes__add",
        title="Add",
        description="",
        input_schema={"type": "object"},
        definition_sha="1",
    )
    before = await agreed("notes", "add")

    await opened.store.pin_tool(PinTool(tool=tool, definition={"title": "Add"}))
    first = await agreed("notes", "add")
    changed = replace(tool, definition_sha="2")
    await opened.store.pin_tool(PinTool(tool=changed, definition={"title": "Other"}))

    assert before is None
    assert first == AgreedTool(definition_sha="1", definition={"title": "Add"})
    assert await agreed("notes", "add") == AgreedTool(
        definition_sha="2", definition={"title": "Other"}
    )
    assert await agreed("other", "add") is None


async def test_a_timer_is_due_once_for_one_worker(opened: OpenStore, clock: ManualClock) -> None:
    due = clock.now() + timedelta(seconds=10)
    await opened.store.put_timer(PutTimer(name="a", kind="sweep", due_at=due, payload={"n": 1}))
    lease = due + timedelta(seconds=60)

    early = await opened.store.claim_timer(worker="w", lease_until=lease)
    clock.advance(10)
    first = await opened.store.claim_timer(worker="w", lease_until=lease)
    second = await opened.store.claim_timer(worker="w2", lease_until=lease)
    await opened.store.done_timer("a")
    clock.advance(100)
    gone = await opened.store.claim_timer(worker="w", lease_until=lease)

    assert (early, second, gone) == (None, None, None)
    assert first is not None
    assert (first.name, first.kind, first.payload, first.due_at) == ("a", "sweep", {"n": 1}, due)


@requirement("case.sc7")
async def test_a_restart_three_hours_before_a_timer_leaves_its_time_and_it_is_due_once(
    open_in: StoreFactory, tmp_path: Path, clock: ManualClock
) -> None:
    async with open_in(tmp_path, clock) as first:
        due = clock.now() + timedelta(hours=3)
        await first.store.put_timer(PutTimer(name="a", kind="sweep", due_at=due))
    found: list[bool] = []
    async with open_in(tmp_path, clock) as later:
        for hours in (0, 2.9, 0.1, 0):
            clock.advance(hours * 3600)
            lease = clock.now() + timedelta(minutes=1)
            found.append(await later.store.claim_timer(worker="w", lease_until=lease) is not None)

    assert found == [False, False, True, False]


async def test_a_repeating_timer_comes_again_and_skips_what_was_missed(
    opened: OpenStore, clock: ManualClock
) -> None:
    start = clock.now()
    await opened.store.put_timer(PutTimer(name="a", kind="sweep", due_at=start, every_ms=10_000))
    clock.advance(35)
    lease = clock.now() + timedelta(seconds=5)
    assert await opened.store.claim_timer(worker="w", lease_until=lease) is not None

    await opened.store.done_timer("a")

    assert await opened.store.claim_timer(worker="w", lease_until=lease) is None
    clock.advance(5)
    again = await opened.store.claim_timer(worker="w", lease_until=lease)
    assert again is not None
    assert again.due_at == start + timedelta(seconds=40)


async def test_a_crashed_send_is_never_claimed_again_by_itself(opened: OpenStore) -> None:
    await opened.store.enqueue(
        Enqueue(place=HOME, group_key="k", parts=(text("1"), text("2")), origin=Origin.SEND)
    )
    out = await opened.store.claim_delivery(sending())
    assert out is not None

    await opened.store.recover(worker="w2")

    assert [item.state for item in await opened.readers.deliveries.group("k")] == [
        "uncertain",
        "ready",
    ]
    assert await opened.store.claim_delivery(sending()) is None
