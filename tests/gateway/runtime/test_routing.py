"""Where approvals are decided, over the real store: in the chat, at home, or with an admin."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from gateway.domain.delivery import Delivery, DeliveryKind
from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.operations.inbound import Lane
from gateway.domain.operations.upkeep import SetHome
from gateway.domain.question import ApproverPolicy, Approvers, QuestionState
from gateway.domain.tools import ToolCall
from gateway.ports import Approval
from gateway.runtime.config import AccessConfig, ApprovalsConfig, PersonRole, Route
from tests.fakes.loopback import PLATFORM
from tests.fakes.tools import tool
from tests.support.people import (
    ANNA,
    BEN,
    GROUP,
    ROOT,
    People,
    buttons,
    dm,
    limit,
    people,
    short,
    token,
)
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

HOME = Place(platform=PLATFORM, chat="home", chat_type=ChatType.CHANNEL)
GUEST = Actor(platform=PLATFORM, id="4", name="Gus")
SECOND = Actor(platform=PLATFORM, id="8", name="Second")
MUTE = Place(platform="mute", chat="1", chat_type=ChatType.DM)
NOTE = tool("add_note")
REQUESTER = Approvers()
Asked: TypeAlias = asyncio.Task[Approval]
ACCESS = AccessConfig(
    admins=frozenset({str(ROOT), str(SECOND)}),
    roles={PersonRole.GUEST: frozenset({str(GUEST)})},
)


@asynccontextmanager
async def office(
    tmp_path: Path,
    *,
    route: Route = Route.HERE,
    home: Place | None = None,
    approvers: Approvers = REQUESTER,
) -> AsyncGenerator[People]:
    config = ApprovalsConfig(route=route, approvers=approvers)
    async with people(tmp_path / "state.db", config=config, access=ACCESS) as chat:
        if home is not None:
            await chat.store.set_home(SetHome(place=home, by=ROOT))
        yield chat


def asking(chat: People, call: ToolCall) -> Asked:
    async def ask() -> Approval:
        async with limit() as deadline:
            return await chat.broker.approve(call, NOTE, deadline=deadline)

    return chat.tasks.create_task(ask(), name="ask")


async def writes(chat: People, person: Actor) -> None:
    """Let somebody write to the bot alone, and have that answered."""
    await chat.accept(chat.message("hi", dm(person), person), lane=Lane.TURN)
    claim = await chat.store.claim_turn(worker="w")
    assert claim is not None
    await chat.end(claim)


def texts(chat: People, place: Place) -> list[str]:
    return [x.body for x in chat.log if x.kind is DeliveryKind.TEXT and x.place == place]


def texts_of(sent: list[Delivery]) -> list[tuple[Place, str]]:
    return [(item.place, item.body) for item in sent]


async def asked_by(chat: People, person: Actor, place: Place) -> Asked:
    claim = await chat.turn(sender=person, place=place)
    return asking(chat, await chat.call({"text": "milk"}, claim=claim))


@requirement("approval.decide.approvers")
async def test_by_default_the_card_is_in_the_chat_of_the_call(tmp_path: Path) -> None:
    async with office(tmp_path, home=HOME) as chat:
        waiting = await asked_by(chat, ANNA, GROUP)
        card = await chat.card()
        assert card.place == GROUP
        await chat.press(token(card, "Allow once"))
        assert (await waiting).allowed
        assert texts(chat, GROUP) == []


@requirement("approval.decide.approvers")
async def test_at_home_the_card_is_decided_and_the_chat_of_the_call_is_told_that_it_waits(
    tmp_path: Path,
) -> None:
    async with office(tmp_path, route=Route.HOME, home=HOME) as chat:
        waiting = await asked_by(chat, ANNA, GROUP)
        card = await chat.card()
        assert card.place == HOME
        assert "milk" in card.body
        assert "Always allow" in buttons(card)
        await chat.sent()
        assert texts(chat, GROUP) == ["Waiting for approval by Anna or an admin."]
        await chat.press(token(card, "Allow once"), by=BEN, place=HOME)
        await chat.press(token(card, "Allow once"), place=GROUP)
        assert (await chat.only_question()).state is QuestionState.PENDING
        await chat.press(token(card, "Allow once"), by=ROOT, place=HOME)
        approval = await waiting
        assert (approval.allowed, approval.reason) == (True, "allowed once by Root")
        closings = [x for x in [*chat.log, *await chat.sent()] if x.kind is DeliveryKind.EDIT]
        assert [x.place for x in closings] == [HOME]


@requirement("approval.decide.approvers")
async def test_what_is_asked_at_home_itself_is_asked_in_its_own_conversation(
    tmp_path: Path,
) -> None:
    async with office(tmp_path, route=Route.HOME, home=GROUP) as chat:
        waiting = await asked_by(chat, ANNA, GROUP)
        card = await chat.card()
        await chat.press(token(card, "Deny"))
        assert not (await waiting).allowed
        assert (card.place, texts(chat, GROUP)) == (GROUP, [])


@requirement("approval.decide.approvers")
async def test_an_admins_direct_chat_has_the_card_and_the_other_admins_read_what_it_says(
    tmp_path: Path,
) -> None:
    async with office(tmp_path, route=Route.DM_ADMINS) as chat:
        await writes(chat, SECOND)
        await writes(chat, ROOT)
        waiting = await asked_by(chat, ANNA, GROUP)
        card = await chat.card()
        await chat.sent()
        assert card.place == dm(SECOND)
        (told,) = texts(chat, dm(ROOT))
        assert "demo · add_note" in told
        assert '"text": "milk"' in told
        assert f"/approve {short(card)}" in told
        assert texts(chat, GROUP) == ["Waiting for approval by Anna or an admin."]
        said = await chat.say("approve", short(card), by=ROOT, place=dm(ROOT))
        assert said.endswith("Allowed once.")
        assert (await waiting).reason == "allowed once by Root"


@requirement("approval.decide.approvers")
@pytest.mark.parametrize("route", [Route.HOME, Route.DM_ADMINS])
async def test_an_admin_alone_with_the_bot_is_asked_there_when_nowhere_else_can_be(
    tmp_path: Path, route: Route
) -> None:
    async with office(tmp_path, route=route) as chat:
        await writes(chat, SECOND)
        waiting = await asked_by(chat, ROOT, dm(ROOT))
        card = await chat.card()
        assert card.place == dm(ROOT)
        await chat.press(token(card, "Deny"), by=ROOT, place=dm(ROOT))
        assert not (await waiting).allowed
        assert texts(chat, dm(SECOND)) == []


@requirement("approval.decide.approvers")
@pytest.mark.parametrize(
    ("route", "says"), [(Route.HOME, "/sethome"), (Route.DM_ADMINS, "access.admins")]
)
async def test_where_the_route_leads_nowhere_nothing_runs_and_the_reason_says_what_helps(
    tmp_path: Path, route: Route, says: str
) -> None:
    async with office(tmp_path, route=route) as chat:
        approval = await (await asked_by(chat, ANNA, GROUP))
        assert not approval.allowed
        assert says in approval.reason
        assert texts_of(await chat.sent()) == [(GROUP, f"demo · add_note was {approval.reason}.")]


@requirement("approval.decide.approvers")
async def test_only_the_listed_and_admins_decide_whoever_asked(tmp_path: Path) -> None:
    listed = Approvers(policy=ApproverPolicy.LIST, ids=(str(BEN),))
    async with office(tmp_path, approvers=listed) as chat:
        waiting = await asked_by(chat, ANNA, GROUP)
        card = await chat.card()
        await chat.press(token(card, "Allow once"))
        (notice,) = await chat.sent()
        assert notice.body == "Only a listed approver or an admin can decide this."
        await chat.press(token(card, "Allow once"), by=BEN)
        assert (await waiting).reason == "allowed once by Ben"


async def test_who_may_not_decide_alone_with_the_bot_is_decided_for_at_home(
    tmp_path: Path,
) -> None:
    admins = Approvers(policy=ApproverPolicy.ADMINS)
    async with office(tmp_path, home=HOME, approvers=admins) as chat:
        waiting = await asked_by(chat, ANNA, dm(ANNA))
        card = await chat.card()
        assert card.place == HOME
        await chat.press(token(card, "Deny"), by=ROOT, place=HOME)
        assert not (await waiting).allowed
        assert texts(chat, dm(ANNA)) == ["Waiting for approval by an admin."]


@requirement("case.ap10")
@pytest.mark.parametrize("at_home", [True, False])
async def test_a_guests_request_goes_to_the_admins_and_the_guest_reads_only_that_it_waits(
    tmp_path: Path, at_home: bool
) -> None:
    async with office(tmp_path, home=HOME if at_home else None) as chat:
        await writes(chat, ROOT)
        waiting = await asked_by(chat, GUEST, dm(GUEST))
        card = await chat.card()
        await chat.sent()
        where = HOME if at_home else dm(ROOT)
        assert card.place == where
        seen_by_guest = [x.body for x in chat.log if x.place == dm(GUEST)]
        assert seen_by_guest == ["Waiting for approval by an admin."]
        said = await chat.say("approve", short(card), by=GUEST, place=dm(GUEST))
        assert "Allowed" not in said
        await chat.press(token(card, "Allow once"), by=ROOT, place=where)
        assert (await waiting).reason == "allowed once by Root"


@requirement("case.ap10")
async def test_a_guest_is_not_asked_in_the_place_of_an_admin_who_cannot_be_reached(
    tmp_path: Path,
) -> None:
    async with office(tmp_path) as chat:
        approval = await (await asked_by(chat, GUEST, dm(GUEST)))
        assert "none can be reached" in approval.reason
        assert texts_of(await chat.sent()) == [
            (dm(GUEST), f"demo · add_note was {approval.reason}.")
        ]


@requirement("case.ap5")
async def test_without_a_surface_an_existing_home_channel_is_used(tmp_path: Path) -> None:
    async with office(tmp_path, home=HOME) as chat:
        waiting = await asked_by(chat, Actor(platform="mute", id="1", name="Mia"), MUTE)
        card = await chat.card()
        assert card.place == HOME
        await chat.press(token(card, "Allow once"), by=ROOT, place=HOME)
        assert (await waiting).allowed


@requirement("case.ap5", "threat.s8")
async def test_without_any_surface_the_denial_says_what_would_help(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db", access=AccessConfig()) as chat:
        approval = await (await asked_by(chat, Actor(platform="mute", id="1"), MUTE))
        assert approval.reason == (
            "not run: nobody can be asked on mute: an admin gives /sethome in a chat where "
            "somebody can answer"
        )


@requirement("case.ap5")
async def test_where_nobody_can_answer_now_home_is_asked_and_without_one_the_chat_itself(
    tmp_path: Path,
) -> None:
    for home in (HOME, None):
        path = tmp_path / f"{home is None}.db"
        async with people(path, access=ACCESS, answerable=lambda place: False) as chat:
            if home is not None:
                await chat.store.set_home(SetHome(place=home, by=ROOT))
            waiting = await asked_by(chat, ANNA, GROUP)
            card: Delivery = await chat.card()
            assert card.place == (home or GROUP)
            assert "Deny" in buttons(card)
            await chat.press(token(card, "Deny"), by=ROOT, place=card.place)
            assert not (await waiting).allowed


async def test_home_is_not_asked_where_nobody_there_could_decide(tmp_path: Path) -> None:
    nobody = AccessConfig()
    async with people(tmp_path / "state.db", access=nobody, answerable=lambda place: False) as chat:
        await chat.store.set_home(SetHome(place=HOME, by=ROOT))
        waiting = await asked_by(chat, ANNA, GROUP)
        card = await chat.card()
        assert card.place == GROUP
        await chat.press(token(card, "Deny"))
        assert not (await waiting).allowed
