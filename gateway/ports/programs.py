"""The running gateway, as a shell command or the bridge sees it."""

from dataclasses import dataclass
from typing import Protocol

from gateway.domain.ids import (
    DeliveryId,
)
from gateway.domain.question import Action, Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    target: str
    text: str
    attachments: tuple[str, ...] = ()
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    platform: str
    chat: str
    message_ids: tuple[str, ...]
    delivery: DeliveryId


class GatewayClient(Protocol):
    """The running gateway, as a shell command or the bridge sees it."""

    async def send(self, request: SendRequest) -> SendResult:
        """Return once the platform gave its id.

        Raises:
            GatewayNotRunning: At once, nothing is queued.
            GatewayRefused: With a code of the control API.
        """
        ...

    async def decide(self, question: str, *, action: Action, reason: str = "") -> Decision: ...
