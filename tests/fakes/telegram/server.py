"""The HTTP side of the service: one route for methods, one for files, on a loopback socket."""

import asyncio
import json
from contextlib import suppress
from typing import Any, Final

from aiohttp import web

from tests.fakes.telegram import params
from tests.fakes.telegram.errors import ApiError, bad_request, flood, not_found, unauthorized
from tests.fakes.telegram.faults import Fault, Trouble
from tests.fakes.telegram.methods import METHODS
from tests.fakes.telegram.methods.call import Asked
from tests.fakes.telegram.service import Call, Service
from tests.fakes.telegram.state import Bot

MAX_BODY: Final = 60_000_000
_LIMITED: Final = ("send", "edit", "delete", "copy", "forward")
_UNLIMITED: Final = ("sendchataction", "deletewebhook", "deletemycommands")
_PAGE: Final = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n</html>\r\n"


class Server:
    """Serves a `Service`; it can go down and come back on its port with everything kept."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.port = 0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """The API root, to which a client appends `/bot<token>`."""
        return f"http://127.0.0.1:{self.port}"

    async def up(self, *, port: int | None = None) -> None:
        self.service.closing = asyncio.Event()
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/bot{token}/{method}", self._method)
        app.router.add_get("/file/bot{token}/{path:.+}", self._download)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port if port is None else port)
        await site.start()
        self.port = int(runner.addresses[0][1])
        self._runner = runner

    async def down(self) -> None:
        """Refuse connections; those that are open are closed."""
        if self._runner is None:
            return
        runner, self._runner = self._runner, None
        self.service.closing.set()
        self.service.changed()
        await runner.cleanup()

    async def _method(self, request: web.Request) -> web.StreamResponse:
        service = self.service
        method = request.match_info["method"]
        try:
            asked_params = await params.read(request)
        except ApiError as error:
            service.violation(f"{method}: {error.description}")
            return _answer(error.status, error.body())
        chat = _number(asked_params.values.get("chat_id"))
        call = Call(at=service.now(), method=method, values=dict(asked_params.values), chat=chat)
        service.calls.append(call)
        service.changed()
        fault = service.faults.next(method, chat)
        if fault is not None and (before := await self._before(request, fault)) is not None:
            call.status, call.description = before.status, fault.description
            service.changed()
            return before
        status, body = await self._run(request.match_info["token"], method, asked_params)
        call.status, call.description = status, str(body.get("description", ""))
        service.changed()
        if fault is not None:
            return await self._after(request, fault, status, body)
        return _answer(status, body)

    async def _run(
        self, token: str, method: str, given: params.Params
    ) -> tuple[int, dict[str, Any]]:
        service = self.service
        try:
            bot = service.world.bots.get(token)
            if bot is None:
                raise unauthorized()
            handler = METHODS.get(method.lower())
            if handler is None:
                known = service.schema.knows(method)
                why = "not modelled here" if known else "no method of the Bot API"
                service.violation(f"{method}: {why}")
                raise not_found()
            self._check(method, given)
            self._meter(bot, method, given)
            result = await handler(Asked(service=service, bot=bot, params=given, method=method))
        except ApiError as error:
            return error.status, error.body()
        service.violation(*(f"{method}: {name} is not modelled here" for name in given.unread))
        service.violation(*service.schema.of_result(method, result))
        return 200, {"ok": True, "result": result}

    def _check(self, method: str, given: params.Params) -> None:
        # A file that is sent in a part of its own leaves no parameter behind.
        values = {name: f"attach://{name}" for name in given.uploads} | dict(given.values)
        extra = {name for name in given.uploads if f"attach://{name}" in str(given.values)}
        problems = self.service.schema.of_call(
            method, {name: value for name, value in values.items() if name not in extra}
        )
        if problems:
            self.service.violation(*problems)
            raise bad_request(problems[0])

    def _meter(self, bot: Bot, method: str, given: params.Params) -> None:
        name = method.lower()
        if not name.startswith(_LIMITED) or name in _UNLIMITED:
            return
        chat = bot.chats.get(_number(given.values.get("chat_id")) or 0)
        if chat is None:
            return
        calls = len(given.values.get("media", ())) if name == "sendmediagroup" else 1
        service = self.service
        wait = service.meter.spend(bot.id, chat.id, chat.kind, calls=calls, now=service.now())
        if wait:
            raise flood(wait)

    async def _before(self, request: web.Request, fault: Fault) -> web.StreamResponse | None:
        """Do what comes in the way of the effect; None when nothing does."""
        match fault.trouble:
            case Trouble.REFUSE:
                more = {} if fault.retry_after is None else {"retry_after": fault.retry_after}
                error = ApiError(fault.status, fault.description, **more)
                return _answer(error.status, error.body())
            case Trouble.PAGE:
                return web.Response(status=fault.status, text=_PAGE, content_type="text/html")
            case Trouble.CUT_BEFORE:
                return _cut(request)
            case Trouble.HANG_BEFORE:
                await self._hang()
                return _cut(request)
            case Trouble.SLOW:
                with suppress(TimeoutError):
                    async with asyncio.timeout(fault.seconds):
                        await self.service.closing.wait()
                return None
            case Trouble.HANG_AFTER | Trouble.CUT_AFTER | Trouble.CUT_ANSWER:
                return None

    async def _after(
        self, request: web.Request, fault: Fault, status: int, body: dict[str, Any]
    ) -> web.StreamResponse:
        match fault.trouble:
            case Trouble.HANG_AFTER:
                await self._hang()
                return _cut(request)
            case Trouble.CUT_AFTER:
                return _cut(request)
            case Trouble.CUT_ANSWER:
                whole = json.dumps(body).encode()
                half = web.StreamResponse(status=status)
                half.content_length = len(whole) + 1
                await half.prepare(request)
                await half.write(whole[: len(whole) // 2])
                return _cut(request)
            case _:
                return _answer(status, body)

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

    async def _download(self, request: web.Request) -> web.StreamResponse:
        world = self.service.world
        path = request.match_info["path"]
        if request.match_info["token"] not in world.bots:
            return _answer(401, unauthorized().body())
        found = (file for file in world.files.values() if file.path == path)
        file = next(found, None)
        if file is None:
            return _answer(404, not_found().body())
        return web.Response(body=file.data, content_type="application/octet-stream")


def _answer(status: int, body: dict[str, Any]) -> web.Response:
    return web.json_response(body, status=status)


def _cut(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


def _number(value: object) -> int | None:
    text = str(value)
    return int(text) if text.lstrip("-").isdecimal() else None
