"""Permissions that another agent asks for: a card in a chat, decided like any other, run by nobody here."""

from pathlib import Path

import pytest

from gateway.domain.errors import GatewayRefused
from gateway.domain.ids import Actor
from gateway.domain.operations.upkeep import SetHome
from gateway.domain.question import ApproverPolicy, Question, QuestionState
from gateway.ports import PermissionRequest
from mcp_host.bridge.config import BridgeConfig
from tests.fakes.loopback import PLATFORM, chat, press, token_of
from tests.fakes.office import Office, open_office
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


def request(**more: str) -> PermissionRequest:
    return PermissionRequest(
        id="abcde",
        agent="claude-code",
        tool="Bash",
        description="Runs the tests",
        preview="make test",
        **more,
    )


async def found(office: Office, identifier: str) -> Question:
    question = await office.readers.questions.find(identifier)
    assert isinstance(question, Question)
    return question


@requirement("bridge.channel_mode")
async def test_whoever_wrote_last_is_asked_where_that_was(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        await office.say("hello")
        await office.chat.until(lambda: len(office.chat.texts()) == 1)
        key = chat(1).session_key
        asked = await office.client.ask_permission(
            request(session_key=key, requester=f"{PLATFORM}:1")
        )
        await office.chat.until(lambda: bool(office.chat.cards()))
        (card,) = office.chat.cards()
        assert "make test" in f"{card.body}{card.payload}"
        await office.runtime.intake.emit(press(token_of(card, "Deny"), n=9))
        await office.chat.until(lambda: any("Denied" in item.body for item in office.chat.sent))
        settled = await found(office, asked)

    assert (settled.server, settled.tool) == ("claude-code", "Bash")
    assert settled.state is QuestionState.DENIED
    assert settled.approvers.policy is ApproverPolicy.REQUESTER
    assert office.tools.ran == []


@requirement("bridge.channel_mode")
async def test_without_a_conversation_an_admin_is_asked_at_home(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        with pytest.raises(GatewayRefused) as nowhere:
            await office.client.ask_permission(request())
        await office.store.set_home(SetHome(place=chat(5), by=Actor(platform="config", id="x")))
        asked = await found(office, await office.client.ask_permission(request()))

    assert nowhere.value.code == "no_home_channel"
    assert asked.shown_in.chat == chat(5).chat
    assert asked.approvers.policy is ApproverPolicy.ADMINS


@requirement("bridge.channel_mode")
async def test_where_agents_decide_nothing_they_ask_for_nothing(tmp_path: Path) -> None:
    async with open_office(tmp_path, bridge=BridgeConfig(allow_approvals=False)) as office:
        with pytest.raises(GatewayRefused) as refused:
            await office.client.ask_permission(request())

    assert refused.value.code == "not_allowed"
