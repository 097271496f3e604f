"""How events and interactions reach the app: over its sockets in turns, or posted and signed.

An event that is not acknowledged in time comes again, three times at most; with no socket at all it
is lost (facts/scale.md). Interactions and commands come once.
"""

import asyncio
import hashlib
import hmac
import itertools
import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from tests.fakes.slack.state import Json

if TYPE_CHECKING:
    from tests.fakes.slack.service import Service

_KEPT: Final = 1_000


@dataclass(slots=True, kw_only=True, eq=False)
class Socket:
    """One Socket Mode connection; a `deaf` one looks alive and is told nothing."""

    ws: web.WebSocketResponse
    transport: asyncio.Transport | None
    deaf: bool = False
    frozen: bool = False


@dataclass(slots=True, kw_only=True)
class Given:
    """Something the app was told, and how it took it."""

    kind: str
    payload: Json
    tries: int = 0
    seconds: float | None = None
    """Until it was acknowledged; None while it is not."""
    answer: Json | None = None
    over: bool = False


@dataclass(slots=True)
class Outbox:
    """Hands things to the app, in their order while they are acknowledged."""

    service: "Service"
    sockets: list[Socket] = field(default_factory=list[Socket])
    given: list[Given] = field(default_factory=list[Given])
    lost: list[Given] = field(default_factory=list[Given])
    request_url: str = ""
    """Where things are posted instead of the sockets, "" for the sockets."""
    forge: dict[str, str] = field(default_factory=dict[str, str])
    """Headers of posts to put others in the place of."""
    _turns: "itertools.count[int]" = field(default_factory=lambda: itertools.count())
    _acks: dict[str, "asyncio.Future[Json]"] = field(
        default_factory=dict[str, "asyncio.Future[Json]"]
    )
    _tasks: set["asyncio.Task[Any]"] = field(default_factory=set["asyncio.Task[Any]"])

    @property
    def pending(self) -> Sequence[Given]:
        return [given for given in self.given if not given.over]

    def give(self, kind: str, payload: Json) -> Given:
        """Begin to hand something over."""
        given = Given(kind=kind, payload=payload)
        self.given = [*self.given[-_KEPT:], given]
        self._start(given)
        return given

    def again(self, given: Given) -> None:
        """Hand over once more what was acknowledged, as it was."""
        given.over = False
        self._start(given)

    def acknowledged(self, envelope: str, payload: Json) -> None:
        waiting = self._acks.pop(envelope, None)
        if waiting is None:
            self.service.violation(f"an acknowledgement of what was not sent: {envelope}")
        elif not waiting.done():
            waiting.set_result(payload)

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, given: Given) -> None:
        task = asyncio.get_running_loop().create_task(self._hand_over(given))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _hand_over(self, given: Given) -> None:
        waits = (0.0, *self.service.limits.retry_seconds) if given.kind == "events_api" else (0.0,)
        began = time.monotonic()
        for retry, wait in enumerate(waits):
            if wait:
                await asyncio.sleep(wait)
            given.tries += 1
            answer = await self._try(given, retry)
            if answer is not None:
                given.seconds, given.answer = time.monotonic() - began, answer
                break
        else:
            self.lost.append(given)
        given.over = True
        self.service.changes.note()

    async def _try(self, given: Given, retry: int) -> Json | None:
        if self.request_url:
            return await self._post(given, retry)
        # Which of the connections gets a thing is Slack's choice.
        open_sockets = [socket for socket in self.sockets if not socket.ws.closed]
        if not open_sockets:
            return None
        socket = open_sockets[next(self._turns) % len(open_sockets)]
        envelope = str(uuid.uuid4())
        waiting: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._acks[envelope] = waiting
        body: Json = {
            "envelope_id": envelope,
            "type": given.kind,
            "payload": given.payload,
            "accepts_response_payload": given.kind != "events_api",
        }
        if given.kind == "events_api":
            body |= {"retry_attempt": retry, "retry_reason": "timeout" if retry else ""}
        try:
            if not socket.deaf:
                await socket.ws.send_json(body)
            async with asyncio.timeout(self.service.limits.ack_seconds):
                return await waiting
        except (TimeoutError, ConnectionError):
            return None
        finally:
            self._acks.pop(envelope, None)

    async def _post(self, given: Given, retry: int) -> Json | None:
        body, content = _as_body(given)
        headers = self.signed(body) | {"Content-Type": content}
        if retry:
            headers |= {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": "http_timeout"}
        headers |= self.forge
        timeout = aiohttp.ClientTimeout(total=self.service.limits.ack_seconds)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(self.request_url, data=body, headers=headers) as answer,
            ):
                text = await answer.text()
                if answer.status != 200:
                    return None
                return json.loads(text) if text.startswith("{") else {}
        except (aiohttp.ClientError, TimeoutError):
            return None

    def signed(self, body: bytes, *, at: int | None = None) -> dict[str, str]:
        """Return the headers that prove a post."""
        stamp = str(int(time.time()) if at is None else at)
        secret = self.service.world.signing_secret.encode()
        mac = hmac.new(secret, b"v0:" + stamp.encode() + b":" + body, hashlib.sha256)
        return {
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": f"v0={mac.hexdigest()}",
        }


def _as_body(given: Given) -> tuple[bytes, str]:
    form = "application/x-www-form-urlencoded"
    match given.kind:
        case "events_api":
            return json.dumps(given.payload).encode(), "application/json"
        case "interactive":
            return urlencode({"payload": json.dumps(given.payload)}).encode(), form
        case _:
            return urlencode(given.payload).encode(), form
