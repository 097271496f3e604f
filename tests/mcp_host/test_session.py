"""The hooks of the SDK that the session overrides: one contract test each, against mcp 2.3."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import MCPError
from pydantic import ValidationError

from mcp_host.negotiation import negotiate
from mcp_host.server_config import Protocol
from mcp_host.session import Elicit, Era, HostSession
from tests.fakes.mcp.memory import (
    HANDSHAKE,
    Handle,
    MemoryServer,
    MemoryServers,
    Message,
    legacy,
    methods,
    modern,
    params,
)
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

FORM: Message = {"message": "Well?", "requestedSchema": {"type": "object", "properties": {}}}


async def accept(question: Mapping[str, object]) -> dict[str, object]:
    del question
    return {"action": "accept", "content": {}}


@asynccontextmanager
async def connected(
    handle: Handle,
    *,
    protocol: Protocol = Protocol.AUTO,
    remembered: Era | None = None,
    elicit: Elicit | None = accept,
    agree: bool = True,
) -> AsyncGenerator[tuple[HostSession, MemoryServer, dict[str, int]]]:
    counts = {"changed": 0, "closed": 0}

    def count(what: str) -> None:
        counts[what] += 1

    servers = MemoryServers(handle)
    async with servers.open() as server:
        session = HostSession(
            server,
            version="0.0.1",
            elicit=elicit,
            on_lists_changed=lambda: count("changed"),
            on_closed=lambda: count("closed"),
        )
        async with session:
            if agree:
                await negotiate(session, protocol, remembered=remembered)
            yield session, server, counts


def silent(*quiet: str) -> Handle:
    def handle(server: MemoryServer, message: Message) -> Message | None:
        return None if message["method"] in quiet else legacy(server, message)

    return handle


# --- what is advertised: _build_capabilities -------------------------------------


async def test_the_handshake_advertises_forms_and_no_links() -> None:
    async with connected(legacy) as (_, server, _counts):
        (initialize,) = server.of("initialize")

    assert params(initialize)["capabilities"] == {"elicitation": {"form": {}}}
    assert params(initialize)["clientInfo"] == {"name": "hermes", "version": "0.0.1"}


async def test_every_request_to_a_modern_server_advertises_forms_and_no_links() -> None:
    async with connected(modern) as (session, server, _counts):
        await session.request("tools/call", {"name": "echo", "arguments": {"a": None}})
        (call,) = server.of("tools/call")

    meta = params(call)["_meta"]
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {"elicitation": {"form": {}}}
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert params(call)["arguments"] == {"a": None}


async def test_without_forms_nothing_is_advertised_and_a_question_is_an_error() -> None:
    async with connected(legacy, elicit=None) as (_, server, _counts):
        server.send({"id": "q", "method": "elicitation/create", "params": FORM})
        answer = await server.answer_to("q")
        (initialize,) = server.of("initialize")

    assert params(initialize)["capabilities"] == {}
    assert "error" in answer


# --- what is asked of us: _on_request ---------------------------------------------


async def test_a_question_arrives_as_it_was_sent_even_when_the_sdk_would_refuse_it() -> None:
    seen: list[Mapping[str, object]] = []

    async def decline(question: Mapping[str, object]) -> dict[str, object]:
        seen.append(question)
        return {"action": "decline"}

    nested: Message = {"message": "?", "requestedSchema": {"type": "array", "x": [1]}}
    async with connected(legacy, elicit=decline) as (_, server, _counts):
        server.send({"id": "q", "method": "elicitation/create", "params": nested})
        answer = await server.answer_to("q")

    assert seen == [nested]
    assert answer["result"] == {"action": "decline"}


async def test_other_requests_of_a_server_go_to_the_sdk() -> None:
    async with connected(legacy) as (_, server, _counts):
        server.send({"id": "p", "method": "ping"})
        server.send({"id": "r", "method": "roots/list"})
        ping, roots = await server.answer_to("p"), await server.answer_to("r")

    assert ping["result"] == {}
    assert "error" in roots


async def test_a_server_that_takes_its_question_back_cancels_the_asking() -> None:
    asking, cancelled = asyncio.Event(), asyncio.Event()

    async def wait(question: Mapping[str, object]) -> dict[str, object]:
        asking.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return {"never": question}

    async with connected(legacy, elicit=wait) as (session, server, _counts):
        server.send({"id": "q", "method": "elicitation/create", "params": FORM})
        await asking.wait()
        server.send({"method": "notifications/cancelled", "params": {"requestId": "q"}})
        async with asyncio.timeout(5):
            await cancelled.wait()
        result = await session.request("tools/call", {"name": "echo"})

    assert result["content"]
    assert "q" not in server.answers


# --- results: send_raw_request, and what a server may leave out --------------------


async def test_a_modern_server_may_leave_out_what_has_a_default() -> None:
    async with connected(modern, protocol=Protocol.STATELESS) as (session, server, _counts):
        result = await session.request("tools/call", {"name": "echo"})

    assert session.era is Era.MODERN
    assert result["resultType"] == "complete"
    assert methods(server) == ["server/discover", "tools/call"]


async def test_an_error_of_the_server_keeps_its_code() -> None:
    async with connected(legacy) as (session, _server, _counts):
        with pytest.raises(MCPError, match="unknown method") as caught:
            await session.request("resources/list")

    assert caught.value.code == -32601


# --- the end of the link: run and _closed ------------------------------------------


async def test_the_end_of_the_link_is_told_at_once_and_fails_what_is_in_flight() -> None:
    async with connected(silent("tools/call")) as (session, server, counts):
        call = asyncio.create_task(session.request("tools/call", {"name": "echo"}))
        await server.seen("tools/call")
        assert not session.closed
        server.die()
        async with asyncio.timeout(5):
            with pytest.raises(MCPError, match="Connection closed"):
                await call

        assert session.closed
        await eventually_async(lambda: counts["closed"] == 1)
        assert await session.why_closed() == "it went away"


async def test_our_own_reason_for_the_end_comes_first() -> None:
    async with connected(legacy) as (session, _server, _counts):
        session.closing = "it is being reconnected"

        assert await session.why_closed() == "it is being reconnected"


# --- answers nobody waits for: _resolve_pending -------------------------------------


async def test_a_cancelled_call_is_cancelled_on_the_wire_and_remembered_until_answered() -> None:
    async with connected(silent("tools/call")) as (session, server, _counts):
        call = asyncio.create_task(session.request("tools/call", {"name": "echo"}, may_ask=True))
        (request,) = await server.seen("tools/call")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        (cancelled,) = await server.seen("notifications/cancelled")
        assert session.awaits_late_answers

        server.send({"id": request["id"], "result": {"content": []}})
        server.send({"id": "p", "method": "ping"})
        await server.answer_to("p")

        assert params(cancelled)["requestId"] == request["id"]
        assert not session.awaits_late_answers


async def test_our_ids_never_meet_those_of_the_sdk() -> None:
    async with connected(legacy) as (session, server, _counts):
        await session.request("tools/call", {"name": "echo"})
        ids = [request["id"] for request in server.requests]

    assert len(set(ids)) == len(ids)
    assert ids[-1] > 1_000_000 > ids[0]


# --- news: message_handler ------------------------------------------------------------


async def test_a_changed_list_is_told_in_both_eras() -> None:
    for handle in (legacy, modern):
        async with connected(handle) as (_, server, counts):
            server.send({"method": "notifications/tools/list_changed"})
            server.send({"id": "p", "method": "ping"})
            await server.answer_to("p")

            assert counts["changed"] == 1


# --- eras --------------------------------------------------------------------------------


@requirement("mcp.protocol.auto")
async def test_auto_shakes_hands_first() -> None:
    async with connected(legacy) as (session, server, _counts):
        assert session.era is Era.LEGACY
        assert methods(server) == ["initialize"]


@requirement("mcp.protocol.auto")
async def test_auto_discovers_when_the_handshake_is_refused() -> None:
    async with connected(modern) as (session, server, _counts):
        assert session.era is Era.MODERN
        assert methods(server) == ["initialize", "server/discover"]


@requirement("mcp.protocol.auto")
async def test_auto_starts_with_the_era_of_last_time() -> None:
    async with connected(modern, remembered=Era.MODERN) as (session, server, _counts):
        assert session.era is Era.MODERN
        assert methods(server) == ["server/discover"]


@requirement("mcp.protocol.explicit")
async def test_stateless_discovers_first_and_falls_back_once() -> None:
    async with connected(legacy, protocol=Protocol.STATELESS) as (session, server, _counts):
        assert session.era is Era.LEGACY
        assert methods(server) == ["server/discover", "initialize"]


@requirement("mcp.protocol.explicit")
async def test_stateless_does_not_fall_back_from_an_error_only_a_modern_server_gives() -> None:
    def refuse(server: MemoryServer, message: Message) -> Message | None:
        if message["method"] == "server/discover":
            return {"error": {"code": -32021, "message": "you need more"}}
        return legacy(server, message)

    async with connected(refuse, agree=False) as (session, server, _counts):
        with pytest.raises(MCPError, match="you need more"):
            await negotiate(session, Protocol.STATELESS, remembered=None)

        assert methods(server) == ["server/discover"]


@requirement("mcp.protocol.explicit")
async def test_legacy_only_ever_shakes_hands() -> None:
    async with connected(modern, agree=False) as (session, server, _counts):
        with pytest.raises(MCPError):
            await negotiate(session, Protocol.LEGACY, remembered=Era.MODERN)

        assert methods(server) == ["initialize"]


async def test_a_closed_link_is_no_refusal() -> None:
    def hang_up(server: MemoryServer, message: Message) -> Message | None:
        server.die()
        return None if message else legacy(server, message)

    async with connected(hang_up, agree=False) as (session, server, _counts):
        with pytest.raises(MCPError, match="Connection closed"):
            await negotiate(session, Protocol.AUTO, remembered=None)

        assert methods(server) == ["initialize"]


async def test_a_malformed_handshake_is_an_error_and_no_reason_to_try_the_other_era() -> None:
    def nonsense(server: MemoryServer, message: Message) -> Message | None:
        reply: dict[str, Any] = {"result": {**HANDSHAKE, "serverInfo": 5}}
        return reply if message["method"] == "initialize" else legacy(server, message)

    async with connected(nonsense, agree=False) as (session, server, _counts):
        with pytest.raises(ValidationError):
            await negotiate(session, Protocol.AUTO, remembered=None)

        assert methods(server) == ["initialize"]
