"""The HTTP side of the service: methods, sockets, uploads and downloads, on a loopback socket."""

import asyncio
import json
from contextlib import suppress
from typing import Any, Final

from aiohttp import WSMsgType, web

from tests.fakes.slack import params
from tests.fakes.slack.errors import ApiError, RateLimited, missing_scope
from tests.fakes.slack.faults import Fault, Trouble
from tests.fakes.slack.methods import METHODS, Asked
from tests.fakes.slack.outbox import Socket
from tests.fakes.slack.service import Call, Service
from tests.fakes.slack.state import APP, Json, Team

MAX_BODY: Final = 1 << 26
_PAGE: Final = "<!DOCTYPE html><html><head><title>Sign in | Slack</title></head></html>"


class Server:
    """Serves a `Service`; it can go down and come back on its port with everything kept."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def up(self, *, port: int | None = None) -> None:
        self.service.closing = asyncio.Event()
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/api/{method}", self._method)
        app.router.add_get("/link", self._link)
        app.router.add_post("/upload/v1/{file}", self._upload)
        app.router.add_get("/files-pri/{file}/{name}", self._download)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port if port is None else port)
        await site.start()
        self.port = int(runner.addresses[0][1])
        self.service.url = f"http://127.0.0.1:{self.port}"
        self._runner = runner

    async def down(self) -> None:
        """Refuse connections; those that are open are cut."""
        if self._runner is None:
            return
        runner, self._runner = self._runner, None
        self.service.closing.set()
        for socket in list(self.service.outbox.sockets):
            cut_socket(socket)
        self.service.changes.note()
        await runner.cleanup()

    # --- methods ------------------------------------------------------------------------

    async def _method(self, request: web.Request) -> web.StreamResponse:
        service, method = self.service, request.match_info["method"]
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            given = await params.read(request)
        except ApiError as error:
            service.violation(f"{method}: {error.error}")
            return web.json_response(error.body())
        team = next((t for t in service.world.teams.values() if t.token == token), None)
        call = Call(
            at=service.now(),
            method=method,
            team="" if team is None else team.id,
            values=dict(given.values),
        )
        service.calls.append(call)
        service.changes.note()
        fault = service.faults.next(method, call.channel)
        if fault is not None and (before := await self._before(request, fault, call)) is not None:
            service.changes.note()
            return before
        status, body, headers = await self._run(team, token, method, given, call)
        call.error = "" if body["ok"] else body["error"]
        service.changes.note()
        if fault is not None:
            return await self._after(request, fault, body)
        return web.json_response(body, status=status, headers=headers)

    async def _run(
        self, team: Team | None, token: str, method: str, given: params.Params, call: Call
    ) -> tuple[int, Json, dict[str, str]]:
        service = self.service
        headers: dict[str, str] = {}
        try:
            if method == "apps.connections.open":
                if token != service.world.app_token:
                    raise ApiError("invalid_auth" if token else "not_authed")
                url = f"{service.url.replace('http', 'ws')}/link?ticket={service.world.number()}"
                return 200, {"ok": True, "url": url}, headers
            if team is None:
                raise ApiError("invalid_auth" if token else "not_authed")
            headers["x-oauth-scopes"] = ",".join(sorted(team.scopes))
            if method not in METHODS:
                service.violation(f"{method}: not modelled here")
                raise ApiError("unknown_method")
            scopes, handler = METHODS[method]
            lacking = scopes - team.scopes
            if lacking and (len(scopes) == 1 or lacking == scopes):
                raise missing_scope(",".join(sorted(lacking)), team.scopes)
            wait = service.meter.spend(team.id, method, call.channel, now=service.now())
            if wait:
                raise RateLimited(wait)
            asked = Asked(service=service, team=team, params=given, method=method)
            result = await handler(asked)
        except RateLimited as error:
            return 429, error.body(), {"Retry-After": str(error.seconds)}
        except ApiError as error:
            return 200, error.body(), headers
        service.violation(*(f"{method}: {name} is not modelled here" for name in given.unread))
        return 200, {"ok": True, **result}, headers

    async def _before(
        self, request: web.Request, fault: Fault, call: Call
    ) -> web.StreamResponse | None:
        """Do what comes in the way of the effect; None when nothing does."""
        match fault.trouble:
            case Trouble.REFUSE if fault.retry_after is not None:
                call.error = "ratelimited"
                error = RateLimited(fault.retry_after)
                retry = {"Retry-After": str(fault.retry_after)}
                return web.json_response(error.body(), status=429, headers=retry)
            case Trouble.REFUSE:
                call.error = fault.error
                return web.json_response(ApiError(fault.error, **fault.more).body())
            case Trouble.PAGE:
                call.error = "page"
                return web.Response(status=503, text=_PAGE, content_type="text/html")
            case Trouble.CUT_BEFORE:
                return _cut(request)
            case Trouble.HANG_BEFORE:
                await self._hang()
                return _cut(request)
            case Trouble.SLOW:
                return None
            case Trouble.HANG_AFTER | Trouble.CUT_AFTER | Trouble.CUT_ANSWER:
                return None

    async def _after(
        self, request: web.Request, fault: Fault, body: dict[str, Any]
    ) -> web.StreamResponse:
        match fault.trouble:
            case Trouble.HANG_AFTER:
                await self._hang()
                return _cut(request)
            case Trouble.CUT_AFTER:
                return _cut(request)
            case Trouble.CUT_ANSWER:
                whole = json.dumps(body).encode()
                half = web.StreamResponse(headers={"Content-Type": "application/json"})
                half.content_length = len(whole) + 1
                await half.prepare(request)
                await half.write(whole[: len(whole) // 2])
                return _cut(request)
            case Trouble.SLOW:
                with suppress(TimeoutError):
                    async with asyncio.timeout(fault.seconds):
                        await self.service.closing.wait()
                return web.json_response(body)
            case _:
                return web.json_response(body)

    async def _hang(self) -> None:
        """Wait until the test releases what hangs, or the server goes down."""
        waits = [
            asyncio.ensure_future(event.wait())
            for event in (self.service.released, self.service.closing)
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    # --- sockets ------------------------------------------------------------------------

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        service = self.service
        ws = web.WebSocketResponse(autoping=False)
        await ws.prepare(request)
        socket = Socket(ws=ws, transport=request.transport)
        outbox = service.outbox
        if len(outbox.sockets) >= service.limits.max_sockets:
            await ws.send_json({"type": "disconnect", "reason": "too_many_websockets"})
            await ws.close()
            return ws
        outbox.sockets.append(socket)
        hello: Json = {
            "type": "hello",
            "num_connections": len(outbox.sockets),
            "connection_info": {"app_id": APP},
            "debug_info": {"host": "applink-test", "approximate_connection_time": 18060},
        }
        await ws.send_json(hello)
        service.changes.note()
        try:
            async for message in ws:
                if message.type is WSMsgType.PING and not socket.frozen:
                    await ws.pong(message.data)
                elif message.type is WSMsgType.TEXT and not socket.frozen:
                    answer: Json = json.loads(message.data)
                    outbox.acknowledged(answer["envelope_id"], answer.get("payload") or {})
        except ConnectionError:
            # It went away in the middle of something.
            pass
        finally:
            outbox.sockets.remove(socket)
            service.changes.note()
        return ws

    # --- files --------------------------------------------------------------------------

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        stored = self._stored(request)
        body = await request.read()
        if stored is None or len(body) != stored.size:
            return web.Response(status=500, text="Upload failed")
        stored.data, stored.uploaded = body, True
        return web.Response(text=f"OK - {len(body)}")

    async def _download(self, request: web.Request) -> web.StreamResponse:
        stored, token = self._stored(request), request.headers.get("Authorization", "")
        team = self.service.world.teams.get(request.match_info["file"].partition("-")[0])
        if team is None or token != f"Bearer {team.token}":
            # Without a token Slack shows its page for signing in, and says 200.
            return web.Response(text=_PAGE, content_type="text/html")
        if stored is None or not stored.uploaded:
            return web.Response(status=404, text="not found")
        return web.Response(body=stored.data, content_type=stored.media_type)

    def _stored(self, request: web.Request) -> Any:
        team, _, name = request.match_info["file"].partition("-")
        found = self.service.world.teams.get(team)
        return None if found is None else found.files.get(name)


def cut_socket(socket: Socket) -> None:
    """Reset a connection without a word."""
    if socket.transport is not None:
        socket.transport.abort()


def _cut(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)
