"""Asking whether a server may use our model, over the real store."""

import asyncio
from pathlib import Path

import pytest

from gateway.domain.question import QuestionKind
from gateway.domain.tools import ToolCall
from gateway.ports import Approval, SamplingRequest
from tests.fakes.loopback import PLATFORM
from tests.support.people import People, limit, people, short, token
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

REQUEST = SamplingRequest(
    server="notes", server_sha="n1", tool="summarise", excerpt="Sum up:\x1b[2J"
)


async def ask(chat: People, call: ToolCall, request: SamplingRequest = REQUEST) -> Approval:
    async with limit() as deadline:
        return await chat.broker.sample(call, request, deadline=deadline)


@requirement("threat.s29")
async def test_the_card_names_the_server_and_shows_what_it_wrote(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = chat.tasks.create_task(ask(chat, await chat.call()))
        card = await chat.card()
        pending = await chat.readers.questions.pending()
        assert [question.kind for question in pending] == [QuestionKind.SAMPLING]
        assert "notes" in card.body
        assert "while summarise runs" in card.body
        assert "Sum up:" in card.body
        assert "\x1b" not in card.body

        await chat.press(token(card, "Allow once"))

        assert (await waiting).allowed
        assert "Allowed once by Anna" in await chat.closed()


@requirement("threat.s29")
async def test_a_denial_is_told_with_who_and_why(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = chat.tasks.create_task(ask(chat, await chat.call()))
        await chat.say("deny", f"{short(await chat.card())} too costly")
        approval = await waiting
        assert (approval.allowed, approval.reason) == (False, "denied by Anna: too costly")


@requirement("threat.s29")
async def test_what_was_allowed_for_the_session_is_not_asked_again_and_covers_no_other_server(
    tmp_path: Path,
) -> None:
    async with people(tmp_path / "state.db") as chat:
        claim = await chat.turn()
        call = await chat.call(claim=claim)
        waiting = chat.tasks.create_task(ask(chat, call))
        await chat.press(token(await chat.card(), "Allow for this session"))
        assert (await waiting).allowed

        assert (await ask(chat, call)).allowed
        other = SamplingRequest(server="other", server_sha="o1", tool="x", excerpt="")
        again = chat.tasks.create_task(ask(chat, call, other))
        await chat.card()
        again.cancel()
        await asyncio.wait({again})


async def test_a_request_the_server_takes_back_withdraws_its_card(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = chat.tasks.create_task(ask(chat, await chat.call()))
        await chat.card()
        waiting.cancel()
        await asyncio.wait({waiting})
        assert "the server took it back" in await chat.closed()


@requirement("threat.s29")
async def test_where_nobody_can_be_asked_the_reason_says_so(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db", platforms=()) as chat:
        approval = await ask(chat, await chat.call())
        assert not approval.allowed
        assert approval.reason.startswith(f"nobody can be asked on {PLATFORM}: ")
