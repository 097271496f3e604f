"""The routes about the gateway as a whole: how it is, reload, stop."""

import asyncio
import time
from datetime import datetime
from typing import Any, Final

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.control.body import read_body
from gateway.control.desk import Desk
from gateway.control.problems import Problem
from gateway.control.shapes import ms
from gateway.domain.errors import GatewayError, ToolHostError
from gateway.domain.tools import ServerStatus
from gateway.runtime.status import PlatformStatus

API: Final = {"major": 1, "minor": 0}
RELOAD_SECONDS: Final = 30.0


class BasicRoutes:
    """Status, reload and stop."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def status(self, request: Request) -> Response:
        """Answer how everything is (DESIGN §7)."""
        del request
        about, found = self._desk.about, self._desk.board.now()
        leaving = self._desk.leaving()
        return JSONResponse(
            {
                "running": True,
                "healthy": found.healthy and not leaving,
                "pid": about.pid,
                "platforms": [_platform(item) for item in found.platforms],
                "mcp_servers": [_server(item) for item in found.servers],
                "scheduler": {"heartbeat_age_s": round(found.heartbeat_age, 1)},
                "store": {
                    "url": about.store_url,
                    "schema": about.schema,
                    "state": found.store_state,
                    "reason": found.store.broken or found.store.reason,
                    "busy_since": _ms_or_none(found.store.busy_since),
                },
                "stopping": leaving,
                "api": API,
                "version": about.version,
                "home": about.home,
                "started_at": ms(about.started_at),
                "cursor": await self._cursor(),
            }
        )

    async def reload(self, request: Request) -> Response:
        """Apply the servers' configuration as it is now; a named one is reconnected in any case."""
        body = await read_body(request)
        name = body.text_or("server", "") or None
        known = {item.name for item in self._desk.host.servers()}
        began = time.monotonic()
        try:
            async with asyncio.timeout(RELOAD_SECONDS):
                done = await self._desk.host.reload(name)
        except TimeoutError as error:
            sentence = f"not done after {RELOAD_SECONDS:.0f} s; the status shows how far it is"
            raise Problem("not_confirmed", sentence) from error
        except ToolHostError as error:
            if name is not None and name not in known:
                raise Problem("not_found", f"there is no MCP server {name}") from error
            raise Problem("rejected", error.public_message) from error
        return JSONResponse(
            {
                "added": list(done.added),
                "removed": list(done.removed),
                "changed": list(done.changed),
                "parked": [{"name": item, "reason": reason} for item, reason in done.parked],
                "took_ms": round((time.monotonic() - began) * 1000),
            }
        )

    async def stop(self, request: Request) -> Response:
        """End the gateway as a signal would; the answer comes before that."""
        body = await read_body(request)
        return JSONResponse(
            {"stopping": True, "pid": self._desk.about.pid},
            status_code=202,
            background=BackgroundTask(self._end, now=body.flag("now")),
        )

    async def _end(self, *, now: bool) -> None:
        self._desk.stop(now)

    async def _cursor(self) -> int | None:
        try:
            return await self._desk.readers.events.head()
        except GatewayError:
            # How the store is must be told above all when it cannot be read.
            return None


def _platform(item: PlatformStatus) -> dict[str, Any]:
    return {
        "name": item.platform,
        "account": item.account,
        "state": item.health.state.value,
        "reason": item.health.reason,
        "since": ms(item.health.since),
    }


def _server(item: ServerStatus) -> dict[str, Any]:
    return {
        "name": item.name,
        "state": item.state.value,
        "tools": item.tools,
        "reason": item.reason,
        "since": ms(item.since),
        "next_probe_at": _ms_or_none(item.next_probe_at),
    }


def _ms_or_none(at: datetime | None) -> int | None:
    return None if at is None else ms(at)
