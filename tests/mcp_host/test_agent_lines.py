"""What `logs/agent.log` says of servers that come, change, and stay away."""

import logging
import re

import pytest

from gateway.domain.tools import ServerState
from gateway.telemetry.agent_log import LOGGER_NAME
from mcp_host.server_config import ServerConfig
from tests.mcp_host.hosting import legacy, running
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines so far, without their times."""
    found = [record.message for record in caplog.records if record.name == LOGGER_NAME]
    return [re.sub(r"(ms|retry_in)=\d+", r"\1=N", line) for line in found]


@requirement("config.home.agent_log")
async def test_connecting_listing_and_listing_again_are_a_line_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    async with running(legacy()) as host:
        count = host.status().tools
        assert lines(caplog) == [
            "connect server=s ms=N outcome=ok",
            f"discovery server=s ms=N tools={count}",
        ]
        await host.call("changed", "3")
        await eventually_async(lambda: host.status().tools == count + 1)

        assert lines(caplog)[2:] == [f"refresh server=s ms=N tools={count + 1}"]


@requirement("config.home.agent_log")
async def test_a_try_that_fails_and_a_server_that_is_left_alone_are_a_line_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    async with running(ServerConfig(command="no-such-command")) as host:
        assert host.status().state is ServerState.PARKED

    why = "command not found: no-such-command"
    assert lines(caplog) == [
        f'connect server=s ms=N outcome=failed error="{why}"',
        f'park server=s reason="{why}" retry_in=N',
    ]
