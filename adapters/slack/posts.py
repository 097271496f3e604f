"""HTTP mode: Slack posts events, interactions and commands, signed, all to one path.

A signature is proved before anything of a post is read, and 200 means: stored.
"""

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_sdk.signature import SignatureVerifier

from adapters.slack.receiving import Reception
from adapters.slack.watchdog import Watchdog

if TYPE_CHECKING:
    from slack_bolt.app.async_app import AsyncApp

    from adapters.slack.config import SlackAccount

logger = logging.getLogger(__name__)

PATH: Final = "/slack/events"
MAX_BODY: Final = 1 << 20
OLDEST_SECONDS: Final = 300
LISTEN_AGAIN_SECONDS: Final = 30.0
ALIVE_SECONDS: Final = 30.0
STOP_SECONDS: Final = 5.0


async def receive(
    app: "AsyncApp", account: "SlackAccount", reception: Reception, watch: Watchdog
) -> None:
    """Listen until cancelled; what was missed before comes from the history."""
    verifier = SignatureVerifier(account.signing_secret.get_secret_value())

    async def handle(request: web.Request) -> web.StreamResponse:
        refused = await _refusal(request, verifier)
        if refused is not None:
            return refused
        bolt = await app.async_dispatch(await to_bolt_request(request))
        for connection in reception.connections:
            connection.heard()
        return await to_aiohttp_response(bolt)

    server = web.Application(client_max_size=MAX_BODY)
    server.router.add_post(PATH, handle)
    while True:
        runner = web.AppRunner(
            server, access_log=None, handle_signals=False, shutdown_timeout=STOP_SECONDS
        )
        await runner.setup()
        try:
            await _listen(runner, account.listen, reception, watch)
        except OSError as error:
            for connection in reception.connections:
                connection.degraded(f"cannot listen on {account.listen}: {error.strerror}")
        finally:
            await runner.cleanup()
        await reception.clock.sleep(LISTEN_AGAIN_SECONDS)


async def _listen(
    runner: web.AppRunner, listen: str, reception: Reception, watch: Watchdog
) -> None:
    host, _, port = listen.rpartition(":")
    await web.TCPSite(runner, host.strip("[]"), int(port)).start()
    watch.was_deaf()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(watch.run(), name="slack:watchdog")
        while True:
            # Slack posts when there is something; that it can is all there is to know.
            for connection in reception.connections:
                connection.heard()
            await reception.clock.sleep(ALIVE_SECONDS)


async def _refusal(request: web.Request, verifier: SignatureVerifier) -> web.Response | None:
    """Return why a post is not read, None when it is Slack's."""
    stamp = request.headers.get("X-Slack-Request-Timestamp", "")
    signature = request.headers.get("X-Slack-Signature", "")
    # The age is a matter of Slack's clock and of the machine's, not of ours.
    if not stamp.isdecimal() or abs(time.time() - int(stamp)) > OLDEST_SECONDS:
        return web.Response(status=401)
    try:
        body = (await request.read()).decode()
    except web.HTTPRequestEntityTooLarge:
        return web.Response(status=413)
    except UnicodeDecodeError:
        return web.Response(status=401)
    if not verifier.is_valid(body, stamp, signature):
        return web.Response(status=401)
    return None
