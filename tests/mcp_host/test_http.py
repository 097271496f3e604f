"""Streamable HTTP through the whole host, against servers on real sockets."""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from gateway.domain.tools import CallState, ServerState
from mcp_host.server_config import ServerConfig
from tests.fakes.loopback_http import Answer, Request
from tests.fakes.mcp.http_server import ECHO, HttpServer, error, mcp_server
from tests.mcp_host.hosting import Running, running
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.anyio


def at(server: HttpServer, **fields: Any) -> ServerConfig:
    return ServerConfig.model_validate({"url": server.url, **fields})


async def became(host: Running, state: ServerState) -> None:
    await eventually_async(lambda: host.status().state is state)


def is_call(request: Request) -> bool:
    return request.body.get("method") == "tools/call"


@pytest.mark.parametrize("as_events", [False, True])
@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("protocol", ["auto", "stateless"])
async def test_a_tool_is_called_in_both_eras_and_both_forms_of_answers(
    modern: bool, as_events: bool, protocol: str
) -> None:
    async with (
        mcp_server(modern=modern, as_events=as_events) as server,
        running(at(server, protocol=protocol)) as host,
    ):
        result = await host.call("echo", "hello")

    assert (result.state, result.text) == (CallState.OK, "hello")
    assert server.calls == ["hello"]


@requirement("case.mh18")
async def test_every_request_after_the_handshake_carries_the_session() -> None:
    async with (
        mcp_server(news=asyncio.Queue()) as server,
        running(at(server, skip_preflight=True)) as host,
    ):
        await host.call("echo")
        await server.listening.wait()

    first, *later = server.requests
    assert (first.body["method"], first.headers.get("mcp-session-id")) == ("initialize", None)
    assert {request.headers.get("mcp-session-id") for request in later} == {"session-1"}
    assert {request.headers.get("mcp-protocol-version") for request in later} == {"2025-11-25"}
    assert server.methods() == [
        "initialize",
        "notifications/initialized",
        *server.methods()[2:-1],
        "DELETE",
    ]


async def test_a_stateless_server_gets_the_headers_of_its_era_and_no_session() -> None:
    async with mcp_server(modern=True) as server:
        async with running(at(server, protocol="stateless", skip_preflight=True)) as host:
            await host.call("echo", "x")
        (call,) = filter(is_call, server.requests)

    assert server.methods() == ["server/discover", "tools/list", "tools/call"]
    assert call.headers["mcp-protocol-version"] == "2026-07-28"
    assert (call.headers["mcp-method"], call.headers["mcp-name"]) == ("tools/call", "echo")
    assert "mcp-session-id" not in call.headers


@requirement("case.mh4")
@pytest.mark.parametrize("tool", ["echo", "write"])
async def test_an_expired_session_is_renewed_once_and_the_call_is_made_again(tool: str) -> None:
    async with mcp_server() as server, running(at(server)) as host:
        await host.call(tool, "one")
        server.expire()
        registered = host.host.tools()
        result = await host.call(tool, "two")

        assert (result.state, result.text) == (CallState.OK, "two")
        assert server.calls == ["one", "two"]
        assert server.methods().count("initialize") == 2
        assert host.host.tools() == registered
        assert host.status().state is ServerState.READY


@requirement("case.mh4")
async def test_a_session_that_expires_again_and_again_is_an_error_of_the_call() -> None:
    async with mcp_server() as server, running(at(server)) as host:

        async def forgets(request: Request, answer: Answer) -> bool:
            if is_call(request):
                server.expire()
            return False

        server.intercept = forgets
        result = await host.call("write", "one")

        assert result.state is CallState.ERROR
        assert "its session expired" in result.text
        assert (server.calls, server.methods().count("tools/call")) == ([], 2)


@requirement("case.mh4")
async def test_a_server_that_refuses_a_lost_session_in_words_is_understood() -> None:
    async with mcp_server() as server, running(at(server)) as host:
        expired = server.sessions.copy()

        async def in_words(request: Request, answer: Answer) -> bool:
            if not is_call(request) or request.headers["mcp-session-id"] not in expired:
                return False
            body = error(dict(request.body), -32000, "Bad Request: Invalid or expired session")
            await answer.json(400, body)
            return True

        server.intercept = in_words
        result = await host.call("write", "one")

        assert (result.state, server.calls) == (CallState.OK, ["one"])


async def test_a_session_that_expires_unused_is_noticed_by_the_stream_of_news() -> None:
    async with mcp_server(news=asyncio.Queue()) as server, running(at(server)) as host:
        assert server.news is not None
        await server.listening.wait()
        server.expire()
        server.news.put_nowait(None)
        await eventually_async(lambda: server.methods().count("initialize") == 2)
        await became(host, ServerState.READY)

        assert (await host.call("echo", "x")).text == "x"


@requirement("case.mh5")
async def test_a_refused_connection_is_an_error_of_the_tool_and_nothing_else() -> None:
    async with mcp_server(with_sessions=False) as server, running(at(server)) as host:
        port = server.loopback.port
        await host.call("echo", "one")
        server.loopback.stop()
        result = await host.call("write", "two")

        assert result.state is CallState.ERROR
        assert f"cannot reach http://127.0.0.1:{port}/mcp: connection refused" in result.text
        async with mcp_server(port=port, with_sessions=False) as again:
            await host.host.reload("s")
            assert (await host.call("write", "three")).text == "three"
            assert again.calls == ["three"]


@requirement("case.mh5")
async def test_a_refused_request_leaves_the_others_in_flight_alone() -> None:
    release = asyncio.Event()
    async with mcp_server() as server, running(at(server)) as host:

        async def holds(request: Request, answer: Answer) -> bool:
            if is_call(request):
                await release.wait()
            return False

        server.intercept = holds
        slow = asyncio.create_task(host.call("write", "slow"))
        await eventually_async(lambda: "tools/call" in server.methods())
        server.loopback.refuse()
        refused = await host.call("write", "fast")
        release.set()

        assert (refused.state, "connection refused" in refused.text) == (CallState.ERROR, True)
        assert ((await slow).state, server.calls) == (CallState.OK, ["slow"])


@requirement("case.mh5")
@pytest.mark.parametrize("modern", [False, True])
async def test_a_persons_cancel_is_a_cancellation_and_reaches_the_server(modern: bool) -> None:
    gone = asyncio.Event()
    async with mcp_server(modern=modern) as server, running(at(server)) as host:

        async def hangs(request: Request, answer: Answer) -> bool:
            if not is_call(request):
                return False
            await answer.start_events()
            await answer.gone()
            gone.set()
            return True

        server.intercept = hangs
        call = asyncio.create_task(host.call("write", "one"))
        await eventually_async(lambda: "tools/call" in server.methods())
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(gone.wait(), 10)
        server.intercept = None

        assert (await host.call("echo", "after")).text == "after"
        assert ("notifications/cancelled" in server.methods()) is not modern
        assert host.status().state is ServerState.READY


@pytest.mark.parametrize(
    ("status", "body", "state", "said"),
    [
        (500, b"oops", CallState.UNKNOWN, "HTTP 500: oops"),
        (502, b"", CallState.UNKNOWN, "HTTP 502"),
        (400, b"no such thing", CallState.ERROR, "HTTP 400: no such thing"),
        (403, b"not you", CallState.ERROR, "HTTP 403: not you"),
        (401, b"", CallState.ERROR, "HTTP 401"),
        (429, b"slower", CallState.ERROR, "HTTP 429: slower"),
        (202, b"", CallState.ERROR, "HTTP 202"),
    ],
)
async def test_what_a_refusal_means_for_a_call_that_writes(
    status: int, body: bytes, state: CallState, said: str
) -> None:
    async with mcp_server() as server, running(at(server)) as host:

        async def refuses(request: Request, answer: Answer) -> bool:
            if not is_call(request):
                return False
            await answer.whole(status, body, media_type="text/plain")
            return True

        server.intercept = refuses
        result = await host.call("write", "one")

        assert (result.state, said in result.text) == (state, True), result.text
        # Only what proves that nothing ran may be tried again, and once.
        repeated = status in {401, 429}
        assert server.methods().count("tools/call") == (2 if repeated else 1)


@pytest.mark.parametrize(("tool", "tries"), [("write", 1), ("echo", 2)])
@pytest.mark.parametrize("how", ["cut", "short", "events", "no_head"])
async def test_an_answer_that_breaks_off_is_asked_for_again_only_when_that_is_safe(
    tool: str, tries: int, how: str
) -> None:
    async with mcp_server() as server, running(at(server)) as host:

        async def breaks(request: Request, answer: Answer) -> bool:
            if not is_call(request):
                return False
            if how == "short":
                answer.declare(1_000)
            elif how == "events":
                await answer.start_events()
            elif how == "cut":
                await answer.start_events()
                await answer.event({"jsonrpc": "2.0", "method": "notifications/message"})
            answer.cut()
            return True

        server.intercept = breaks
        result = await host.call(tool, "one")

        assert server.methods().count("tools/call") == tries
        assert result.state is (CallState.UNKNOWN if tool == "write" else CallState.ERROR)
        assert "the answer broke off" in result.text


async def test_an_answer_that_breaks_off_after_a_mark_is_taken_up_there() -> None:
    async with mcp_server() as server, running(at(server)) as host:
        identifier: list[object] = []

        async def in_parts(request: Request, answer: Answer) -> bool:
            if is_call(request):
                identifier.append(request.body["id"])
                await answer.start_events()
                await answer.event("", id="mark-1", retry="10")
                await answer.end_events()
                return True
            if request.headers.get("last-event-id") == "mark-1":
                await answer.start_events()
                result = {"content": [{"type": "text", "text": "late"}]}
                await answer.event({"jsonrpc": "2.0", "id": identifier[0], "result": result})
                await answer.end_events()
                return True
            return False

        server.intercept = in_parts
        result = await host.call("write", "one")

        assert (result.state, result.text) == (CallState.OK, "late")
        assert server.methods().count("tools/call") == 1


async def test_a_change_of_the_tools_is_heard_of_by_the_stream_of_news() -> None:
    async with mcp_server(news=asyncio.Queue()) as server, running(at(server)) as host:
        assert server.news is not None
        await server.listening.wait()
        server.tools.append({**ECHO, "name": "fresh"})
        server.news.put_nowait({"method": "notifications/tools/list_changed"})
        await eventually_async(lambda: host.host.find("fresh") is not None)

        # The stream ends and comes back: it is not given up.
        for name in ("second", "third", "fourth"):
            server.listening.clear()
            server.news.put_nowait(None)
            await asyncio.wait_for(server.listening.wait(), 10)
            server.tools.append({**ECHO, "name": name})
            server.news.put_nowait({"method": "notifications/tools/list_changed"})
            await eventually_async(lambda n=name: host.host.find(n) is not None)


@requirement("mcp.http.redirect_never_leaks")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_credentials_never_follow_a_redirect_to_another_origin(
    status: int, transport: str
) -> None:
    secrets = {"Authorization": "Bearer canary", "X-Api-Key": "canary"}
    identity = {"name": "X-Who", "value": "canary"}
    async with mcp_server() as elsewhere, mcp_server() as server:

        async def redirects(request: Request, answer: Answer) -> bool:
            await answer.whole(status, b"", headers={"location": elsewhere.url})
            return True

        server.intercept = redirects
        config = at(server, headers=secrets, identity_header=identity, transport=transport)
        async with running(config) as host:
            reason = host.status().reason

    assert elsewhere.requests == []
    assert server.requests
    assert f"it redirects to {elsewhere.url}, which is not followed" in reason


async def test_a_redirect_within_the_origin_is_followed() -> None:
    async with mcp_server() as server:

        async def moved(request: Request, answer: Answer) -> bool:
            if request.path != "/mcp":
                return False
            await answer.whole(307, b"", headers={"location": "/mcp/"})
            return True

        server.intercept = moved
        async with running(at(server, headers={"X-Key": "k"})) as host:
            assert (await host.call("write", "one")).text == "one"

    assert {request.headers.get("x-key") for request in server.requests} == {"k"}


@requirement("mcp.identity_header", "case.cf1")
async def test_the_headers_of_the_entry_go_out_with_everything() -> None:
    async with mcp_server(news=asyncio.Queue()) as server:
        config = at(
            server,
            headers={
                "Authorization": "Bearer Bearer abc",
                "User-Agent": "mine",
                "X-Ü".encode().decode("latin-1")[:2]: "ü",
            },
            identity_header={"name": "X-Who", "value": "me"},
        )
        async with running(config) as host:
            await host.call("echo")
            await server.listening.wait()

    for name, value in (("authorization", "Bearer abc"), ("user-agent", "mine"), ("x-who", "me")):
        assert {request.headers.get(name) for request in server.requests} == {value}


@requirement("case.ap15")
async def test_the_same_url_with_another_identity_gets_its_own_connection() -> None:
    async with mcp_server() as server:
        entries: Mapping[str, ServerConfig] = {
            name: at(server, identity_header={"name": "X-Who", "value": name})
            for name in ("anna", "ben")
        }
        async with running(entries) as host:
            await host.call("echo", "1", server="anna")
            await host.call("echo", "2", server="ben")
            calls = list(filter(is_call, server.requests))

    assert [call.headers["x-who"] for call in calls] == ["anna", "ben"]
    assert len({call.headers["mcp-session-id"] for call in calls}) == 2


async def test_a_server_that_wants_a_sign_in_is_parked_at_once() -> None:
    async with mcp_server() as server:

        async def refuses(request: Request, answer: Answer) -> bool:
            await answer.json(401, {"error": "invalid_token"})
            return True

        server.intercept = refuses
        async with running(at(server)) as host:
            status = host.status()

    assert status.state is ServerState.PARKED
    assert 'it refuses us: HTTP 401: {"error": "invalid_token"}' in status.reason
    assert server.methods().count("initialize") == 1


async def test_a_variable_nobody_set_parks_the_server_with_its_name() -> None:
    async with mcp_server() as server:
        config = at(server).with_unset(("TOKEN", "TOKEN", "HOST"))
        async with running(config) as host:
            status = host.status()

    assert status.state is ServerState.PARKED
    assert status.reason.endswith("needs a variable not set: TOKEN, HOST")
    assert server.requests == []


@requirement("case.mh6")
async def test_closing_from_another_task_ends_cleanly() -> None:
    async with mcp_server(news=asyncio.Queue()) as server:

        async def never(request: Request, answer: Answer) -> bool:
            if is_call(request):
                await answer.start_events()
                await answer.gone()
                return True
            return False

        async with running(at(server)) as host:
            await server.listening.wait()
            server.intercept = never
            call = asyncio.create_task(host.call("write", "one"))
            await eventually_async(lambda: "tools/call" in server.methods())
            await asyncio.create_task(host.host.close())
            result = await call

        others = asyncio.all_tasks() - {asyncio.current_task()}
        names = [task.get_name() for task in others]
        assert not [name for name in names if name.endswith(":s")]
        assert result.state is CallState.UNKNOWN
        assert "its connection was closed" in result.text
