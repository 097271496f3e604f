"""`GatewayClient` over the control socket, and the other routes of the API. Holds no connection."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from gateway.control.http import Answer, exchange
from gateway.control.paths import socket_path
from gateway.domain.delivery import Origin
from gateway.domain.errors import GatewayRefused
from gateway.domain.ids import DeliveryId
from gateway.domain.question import Action, Surface
from gateway.ports import Decided, PermissionRequest, SendRequest, SendResult

SECONDS: Final = 65.0
"""For an answer: a store that waits for a lock says so after a minute."""
STATUS_SECONDS: Final = 3.0
RELOAD_SECONDS: Final = 40.0
SPARE_SECONDS: Final = 10.0

NO_ROUTE: Final = "no_route"
OLDER: Final = "the running gateway is older: restart it"

_OK: Final = range(200, 300)


class SocketClient:
    """The running gateway of one home. Every method raises what `GatewayClient` says."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    @classmethod
    def of(cls, home: Path, *, environ: Mapping[str, str]) -> "SocketClient":
        """Return the client of a home, whether a gateway runs there or not."""
        return cls(socket_path(home, environ=environ))

    @property
    def is_there(self) -> bool:
        """Whether a gateway may run: its socket is there."""
        return self._socket.is_socket()

    async def status(self) -> Mapping[str, Any]:
        """Return the object of `GET /v1/status`."""
        return await self._ask("GET", "/v1/status", seconds=STATUS_SECONDS)

    async def send(self, request: SendRequest) -> SendResult:
        """Return once the platform gave its id."""
        sent = await self._ask(
            "POST",
            "/v1/send",
            {
                "target": request.target,
                "message": request.text,
                "attachments": list(request.attachments),
                "idempotency_key": request.idempotency_key,
                "origin": "bridge" if request.origin is Origin.BRIDGE else "cli",
                "wait_ms": request.wait_ms,
            },
            seconds=SECONDS + request.wait_ms / 1000,
        )
        return SendResult(
            platform=sent["platform"],
            chat=sent["chat_id"],
            thread=sent["thread_id"] or "",
            message_ids=tuple(sent["message_ids"]),
            delivery=DeliveryId(int(sent["delivery_id"])),
        )

    async def decide(
        self, question: str, *, action: Action, surface: Surface = Surface.CLI, reason: str = ""
    ) -> Decided:
        """Decide a question, by its id or a prefix of it."""
        done = await self.decision(question, action=action, surface=surface, reason=reason)
        return Decided(
            question=done["approval_id"],
            action=Action(done["decision"]),
            votes_needed=done.get("votes_needed", 0),
        )

    async def decision(
        self, question: str, *, action: Action, surface: Surface = Surface.CLI, reason: str = ""
    ) -> Mapping[str, Any]:
        """Do the same; the object of `POST /v1/approvals`."""
        body = {"decision": action.value, "surface": surface.value, "reason": reason}
        return await self._ask("POST", f"/v1/approvals/{_id(question, 'question')}", body)

    async def ask_permission(self, request: PermissionRequest) -> str:
        """Show a person what another agent wants to do; return the question's id."""
        asked = await self._ask("POST", "/v1/permissions", asdict(request))
        return asked["approval_id"]

    async def answer(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take one step of a form; the object of `POST /v1/answers`."""
        return await self._ask("POST", "/v1/answers", step)

    async def revoke_rule(self, rule: str) -> None:
        """End a standing rule."""
        await self._ask("POST", f"/v1/rules/{_id(rule, 'rule')}/revoke", {})

    async def pair(self, change: Mapping[str, str]) -> Mapping[str, Any]:
        """Approve a code or revoke a person; the object of `POST /v1/pairing`."""
        return await self._ask("POST", "/v1/pairing", change)

    async def reload(self, server: str | None = None) -> Mapping[str, Any]:
        """Apply the servers' configuration as it is now."""
        body = {} if server is None else {"server": server}
        return await self._ask("POST", "/v1/reload", body, seconds=RELOAD_SECONDS)

    async def stop(self, *, now: bool = False) -> Mapping[str, Any]:
        """Ask the gateway to end; it answers with its pid, and ends after that."""
        return await self._ask("POST", "/v1/stop", {"now": now})

    async def events(self, *, after: int = 0) -> AsyncGenerator[int]:
        """Return the cursor of the event stream now, then whenever it has moved."""
        async with self._stream("GET", f"/v1/events?after={after}") as answer:
            async for line in answer.lines():
                yield line["cursor"]

    @asynccontextmanager
    async def follow(
        self, client: str, *, interactive: bool
    ) -> AsyncGenerator[AsyncGenerator[Mapping[str, Any]]]:
        """Follow an attached chat; the lines of `GET /v1/inbound`."""
        flag = "true" if interactive else "false"
        target = f"/v1/inbound?client={_part(client)}&interactive={flag}"
        async with self._stream("GET", target) as answer:
            yield answer.lines()

    @asynccontextmanager
    async def give(
        self,
        client: str,
        text: str,
        *,
        event_id: str,
        interactive: bool,
        toolsets: Sequence[str] = (),
    ) -> AsyncGenerator[AsyncGenerator[Mapping[str, Any]]]:
        """Give a line of an attached chat; the lines of `POST /v1/inbound`."""
        body = {
            "client": client,
            "text": text,
            "event_id": event_id,
            "interactive": interactive,
            "toolsets": list(toolsets),
        }
        async with self._stream("POST", "/v1/inbound", body) as answer:
            yield answer.lines()

    async def _ask(
        self,
        method: str,
        target: str,
        body: Mapping[str, Any] | None = None,
        *,
        seconds: float = SECONDS,
    ) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(seconds), self._stream(method, target, body) as answer:
                return await answer.json()
        except TimeoutError as error:
            sentence = f"the gateway gave no answer in {seconds:.0f} s"
            raise GatewayRefused("gateway_timeout", sentence) from error

    @asynccontextmanager
    async def _stream(
        self, method: str, target: str, body: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[Answer]:
        async with exchange(self._socket, method, target, body) as answer:
            if answer.status not in _OK:
                raise _refusal(answer.status, await answer.json())
            yield answer


def _refusal(status: int, said: Mapping[str, Any]) -> GatewayRefused:
    code = str(said.get("code", "internal"))
    if code == NO_ROUTE or (status == 404 and "code" not in said):
        return GatewayRefused("gateway_older", OLDER)
    sentence = str(said.get("error", f"the gateway answered {status}"))
    details = {key: value for key, value in said.items() if key not in {"code", "error"}}
    return GatewayRefused(code, sentence, details=details)


def _part(text: str) -> str:
    return quote(text, safe="")


def _id(text: str, what: str) -> str:
    # Every id has letters and digits alone; anything else would be another route.
    if not (text.isascii() and text.isalnum()):
        raise GatewayRefused("not_found", f"there is no {what} {text}")
    return text
