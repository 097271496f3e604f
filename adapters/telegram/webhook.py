"""Lets Telegram post updates. Only who knows the secret is heard, and 200 means: stored."""

import asyncio
import errno
import json
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, contextmanager
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final, cast

from telegram import error as sdk

from adapters.connection import Connection
from adapters.telegram.client import UPDATE_KINDS, Client
from adapters.telegram.config import WebhookConfig
from adapters.telegram.feeding import Feed
from adapters.telegram.recovery import Recovery
from gateway.ports import Clock

if TYPE_CHECKING:
    from collections.abc import Generator

    from starlette.requests import Request
    from starlette.responses import Response

logger = logging.getLogger(__name__)

MAX_BODY: Final = 1 << 20
SECRET_HEADER: Final = "x-telegram-bot-api-secret-token"  # noqa: S105 - the header's name
MAX_CONNECTIONS: Final = 1
"""Telegram posts one update after the other, so a chat keeps its order."""
CHECK_SECONDS: Final = 60.0
MAX_LOOKS: Final = 30
LOOK_SECONDS: Final = 2.0
LISTEN_AGAIN_SECONDS: Final = 30.0
MAX_POSTS: Final = 64
STOP_SECONDS: Final = 5

_Take = Callable[[dict[str, Any]], Awaitable[bool]]


async def receive(
    client: Client,
    feed: Feed,
    config: WebhookConfig,
    *,
    connection: Connection,
    clock: Clock,
    caught_up: asyncio.Event,
) -> None:
    """Listen, register and feed updates until cancelled; `caught_up`: nothing waits with Telegram."""
    one_at_a_time = asyncio.Lock()

    async def take(body: dict[str, Any]) -> bool:
        update = client.read(body)
        async with one_at_a_time:
            taken = update is None or await feed.take([update], patient=False)
        if taken:
            connection.heard()
        return taken

    secret = config.secret.get_secret_value()
    while True:
        try:
            async with _bound(config.listen) as listener, asyncio.TaskGroup() as tasks:
                tasks.create_task(_serve(listener, secret, take), name="telegram:webhook")
                await _stay_registered(
                    client, config, connection=connection, clock=clock, caught_up=caught_up
                )
        except OSError as error:
            connection.degraded(f"cannot listen on {config.listen}: {error.strerror}")
        await clock.sleep(LISTEN_AGAIN_SECONDS)


async def _stay_registered(
    client: Client,
    config: WebhookConfig,
    *,
    connection: Connection,
    clock: Clock,
    caught_up: asyncio.Event,
) -> None:
    """Tell Telegram where to post, and again from time to time: somebody may have changed it."""
    recovery = Recovery(connection)
    if not config.url:
        logger.warning("webhook.url is empty: Telegram must be told by hand where to post")
    while True:
        try:
            await _register(client, config)
        except sdk.TelegramError as error:
            await clock.sleep(recovery.failed(error))
            continue
        recovery.worked()
        connection.heard()
        for _ in range(MAX_LOOKS):
            if await _drained(client):
                caught_up.set()
                break
            caught_up.clear()
            await clock.sleep(LOOK_SECONDS)
        await clock.sleep(CHECK_SECONDS)


async def _drained(client: Client) -> bool:
    try:
        return (await client.bot.get_webhook_info()).pending_update_count == 0
    except sdk.TelegramError:
        return False


async def _register(client: Client, config: WebhookConfig) -> None:
    if not config.url:
        await client.bot.get_me()
        return
    await client.bot.set_webhook(
        config.url,
        secret_token=config.secret.get_secret_value(),
        allowed_updates=UPDATE_KINDS,
        max_connections=MAX_CONNECTIONS,
    )


async def _serve(listener: socket.socket, secret: str, take: _Take) -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def handle(request: "Request") -> "Response":
        return Response(status_code=await _answer(request, secret, take))

    class Quiet(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> "Generator[None]":
            # The process has its own.
            yield

    app = Starlette(routes=[Route("/{path:path}", handle, methods=["POST"])])
    server = Quiet(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            limit_concurrency=MAX_POSTS,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="telegram:posts")
    try:
        # Cancelled, the server would leave its connections open.
        await asyncio.shield(serving)
        raise OSError(errno.ENOTCONN, "the server ended")
    finally:
        server.should_exit = True
        await serving


async def _answer(request: "Request", secret: str, take: _Take) -> int:
    """Return the status of a post; the sender is proved before its body is read."""
    given = request.headers.get(SECRET_HEADER, "")
    if not compare_digest(given.encode(), secret.encode()):
        return 403
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            return 413
    try:
        update = cast("object", json.loads(bytes(body)))
    except (ValueError, RecursionError):
        return 400
    if not isinstance(update, dict):
        return 400
    return 200 if await take(cast("dict[str, Any]", update)) else 503


@asynccontextmanager
async def _bound(listen: str) -> AsyncGenerator[socket.socket]:
    host, _, port = listen.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), int(port)))
        yield listener
    finally:
        listener.close()
