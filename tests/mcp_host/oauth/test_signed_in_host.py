"""A host whose server wants a sign-in: parked without one, found again by it, and never in a browser."""

import asyncio
import logging
import sys
from pathlib import Path

import pytest

from gateway.domain.tools import CallState, ServerState
from mcp_host.server_config import ServerConfig
from tests.fakes.oauth import oauth_world
from tests.mcp_host.hosting import Running, running
from tests.mcp_host.oauth.signing import Signing, entry
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

LOGIN = "run `hermes mcp login s`"
PROBE = 300


async def parked(host: Running) -> None:
    await eventually_async(lambda: host.status().state is ServerState.PARKED)


async def ready(host: Running) -> None:
    await eventually_async(lambda: host.status().state is ServerState.READY)


@requirement("case.sc9", "mcp.watch.in_process_chat")
async def test_a_reload_with_a_server_nobody_is_signed_in_to_returns_at_once(
    tmp_path: Path,
) -> None:
    async with oauth_world() as world, running({}, tokens=tmp_path) as host:
        host.wanted["s"] = entry(world)

        async with asyncio.timeout(5):
            done = await host.host.reload()

        (told,) = done.parked
        assert told[0] == "s"
        assert told[1].startswith("needs login")
        assert LOGIN in told[1]
        assert host.status().needs_login
        assert not world.seen


@requirement("case.oa1", "fault.f40", "mcp.parked.probes")
async def test_twelve_probes_of_a_dead_sign_in_open_nothing_and_warn_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        await signing.sign_in()
        async with running(entry(world), tokens=signing.store.directory, clock=clock) as host:
            world.expire()
            world.revoke()
            assert LOGIN in (await host.call("echo", "x")).text
            await parked(host)

            for _ in range(12):
                before = host.status().next_probe_at
                clock.advance(PROBE * 1.3)
                await host.host.probe()
                await eventually_async(lambda seen=before: host.status().next_probe_at != seen)

            assert host.status().state is ServerState.PARKED
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [LOGIN in record.getMessage() for record in warnings] == [True]
    assert len(world.token_posts("refresh_token")) == 1
    # The browser's module is loaded by a login at a terminal alone.
    assert "webbrowser" not in sys.modules


@requirement("case.oa20", "mcp.parked.probes")
async def test_a_login_of_another_process_connects_a_parked_server(tmp_path: Path) -> None:
    clock = ManualClock()
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        async with running(entry(world), tokens=signing.store.directory, clock=clock) as host:
            assert host.status().needs_login

            await signing.sign_in()
            host.host.look_at_sign_ins()

            await ready(host)
            assert not host.status().needs_login
            assert (await host.call("echo", "back")).text == "back"


async def test_another_login_has_a_live_server_connect_anew(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        await signing.sign_in()
        async with running(entry(world), tokens=signing.store.directory) as host:
            host.host.look_at_sign_ins()
            assert host.status().statistics.restarts == 0

            await signing.sign_in()
            host.host.look_at_sign_ins()

            await eventually_async(lambda: host.status().statistics.restarts == 1)
            await ready(host)


async def test_a_renewal_is_no_new_login(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        await signing.sign_in()
        async with running(entry(world), tokens=signing.store.directory) as host:
            world.expire()
            assert (await host.call("echo", "x")).text == "x"

            host.host.look_at_sign_ins()
            await asyncio.sleep(0)

            assert host.status().state is ServerState.READY
            assert host.status().statistics.restarts == 0


@requirement("fault.f39")
async def test_a_token_that_ends_in_mid_use_is_renewed_once_for_all_calls(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        await signing.sign_in()
        async with running(entry(world), tokens=signing.store.directory) as host:
            world.expire()

            results = await asyncio.gather(*(host.call("echo", str(i)) for i in range(10)))

            assert [result.text for result in results] == [str(i) for i in range(10)]
            assert len(world.token_posts("refresh_token")) == 1
            # Each ran once: the first try of each was refused before it reached a tool.
            assert sorted(world.calls) == sorted(str(i) for i in range(10))


@requirement("case.oa7")
async def test_a_call_that_takes_too_long_leaves_the_tokens(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        before = await signing.sign_in()
        config = entry(world).model_copy(update={"timeout": 0.05})
        async with running(config, tokens=signing.store.directory) as host:
            world.expire()
            world.answers_tokens.clear()
            result = await host.call("echo", "x")
            world.answers_tokens.set()

            assert result.state is not CallState.OK
        assert signing.stored().login == before.login
        assert signing.stored().refresh_token is not None


@requirement("oauth.step_up")
async def test_a_tool_that_needs_more_fails_alone_and_works_after_a_wider_login(
    tmp_path: Path,
) -> None:
    async with oauth_world(tool_scopes={"write": "mcp:write"}) as world:
        signing = Signing(tmp_path, world)
        await signing.sign_in()
        async with running(entry(world), tokens=signing.store.directory) as host:
            refused = await host.call("write", "x")
            assert "needs a sign-in that allows more (mcp:write)" in refused.text
            assert LOGIN in refused.text
            assert (await host.call("echo", "x")).text == "x"

            world.change(scopes=("mcp", "mcp:write"))
            tokens = await signing.sign_in()
            host.host.look_at_sign_ins()
            await eventually_async(lambda: host.status().statistics.restarts == 1)
            await ready(host)

            assert set((tokens.scope or "").split()) == {"mcp", "mcp:write"}
            assert (await host.call("write", "x")).state is CallState.OK


@requirement("command.reload_mcp.never_interactive")
async def test_a_reload_of_everything_opens_nothing(tmp_path: Path) -> None:
    async with oauth_world() as world, running(entry(world), tokens=tmp_path) as host:
        for server in (None, "s"):
            done = await host.host.reload(server)
            assert dict(done.parked)["s"].startswith("needs login")

        assert "webbrowser" not in sys.modules
        assert not world.seen


async def test_an_entry_without_auth_sends_no_token(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        await signing.sign_in()
        world.seen.clear()
        plain = ServerConfig.model_validate({"url": world.url, "transport": "http"})
        async with running(plain, tokens=signing.store.directory) as host:
            await parked(host)
            assert "needs login" not in host.status().reason

        assert not [seen for seen in world.seen if "authorization" in seen.headers]


@requirement("threat.s13")
async def test_a_server_that_says_our_token_again_is_not_repeated(tmp_path: Path) -> None:
    async with oauth_world() as world:
        signing = Signing(tmp_path, world)
        first = await signing.sign_in()
        async with running(entry(world), tokens=signing.store.directory) as host:
            await host.call("echo", "x")
            world.expire()
            told = await host.call("echo", f"you sent {first.access_token}")
            second = signing.stored().access_token
            assert second != first.access_token
            again = await host.call("echo", f"you sent {second}")

    assert [told.state, again.state] == [CallState.OK, CallState.OK]
    assert "you sent ***" in told.text
    assert "you sent ***" in again.text
    assert first.access_token not in told.text
    assert second not in again.text
