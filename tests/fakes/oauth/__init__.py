"""An authorization server and the MCP server it guards, on real sockets, at the wish of a test.

    async with oauth_world(refresh_for="nobody") as world:
        redirect = await approve(authorize_url)

`settings` says which parts they can play, `World` what happened and what can be changed on the way.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import httpx

from gateway.ports import Clock
from gateway.runtime.clock import SystemClock
from tests.fakes.loopback_http import Handler, Loopback, serve
from tests.fakes.mcp.http_server import mcp_server
from tests.fakes.oauth.authority import Authority
from tests.fakes.oauth.books import DeviceState
from tests.fakes.oauth.guarded import Guard
from tests.fakes.oauth.settings import (
    Iss,
    Known,
    MetadataAt,
    Method,
    Registration,
    ResourceAt,
    Settings,
    Trouble,
)
from tests.fakes.oauth.world import Seen, World

__all__ = [
    "DeviceState",
    "Iss",
    "Known",
    "MetadataAt",
    "Method",
    "Registration",
    "ResourceAt",
    "Seen",
    "Settings",
    "Trouble",
    "World",
    "approve",
    "oauth_world",
]

BROWSER: Final = "Mozilla/5.0"


@asynccontextmanager
async def oauth_world(
    settings: Settings | None = None,
    *,
    clock: Clock | None = None,
    modern: bool = False,
    **wanted: Any,
) -> AsyncGenerator[World]:
    """Serve both on 127.0.0.1 until the end of the block; `wanted` are fields of `Settings`."""
    chosen = replace(settings or Settings(), **wanted)
    world = World(settings=chosen, clock=clock or SystemClock())
    authority = Authority(world)

    def make(loopback: Loopback) -> Handler:
        return authority.handle

    guard = Guard(world, authority)
    async with (
        serve(make) as loopback,
        mcp_server(modern=modern, intercept=guard.intercept) as server,
    ):
        world.authority_origin = f"http://127.0.0.1:{loopback.port}"
        world.mcp = server
        try:
            yield world
        finally:
            world.answers_tokens.set()


async def approve(authorize_url: str) -> str:
    """Do what a browser does with a person who says yes: return the redirect, not followed.

    Raises:
        AssertionError: The server shows an error of its own instead of sending the browser back.
    """
    async with httpx.AsyncClient(trust_env=False, headers={"user-agent": BROWSER}) as browser:
        answer = await browser.get(authorize_url)
    if answer.status_code != 302:
        raise AssertionError(f"HTTP {answer.status_code} at the authorization page: {answer.text}")
    return answer.headers["location"]
