"""Sign-ins to an authorization server that nobody here wrote."""

import asyncio
from pathlib import Path

import pytest

from gateway.domain.tools import CallState
from mcp_host.server_config import ServerConfig
from tests.fakes.oauth.independent import Independent, independent_world
from tests.mcp_host.hosting import running
from tests.mcp_host.oauth.signing import Signing
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


def entry(world: Independent, **oauth: object) -> ServerConfig:
    return ServerConfig.model_validate({"url": world.url, "auth": "oauth", "oauth": oauth})


@requirement("oauth.identification", "case.oa5", "case.oa6")
@pytest.mark.parametrize("method", ["none", "client_secret_basic"])
async def test_a_login_its_calls_and_its_renewals_with_authlib(tmp_path: Path, method: str) -> None:
    async with independent_world() as world:
        config = entry(world, token_endpoint_auth_method=method)
        signing = Signing(tmp_path, world)  # type: ignore[arg-type]
        tokens = await signing.sign_in(config)
        assert tokens.refresh_token is not None
        async with running(config, tokens=signing.store.directory) as host:
            assert (await host.call("echo", "one")).text == "one"
            for round_ in range(1, 4):
                world.expire()
                results = await asyncio.gather(*(host.call("echo", "x") for _ in range(10)))
                assert {result.state for result in results} == {CallState.OK}
                assert world.server.renewals == round_

        assert world.server.replays == 0
        assert signing.stored().refresh_token != tokens.refresh_token
