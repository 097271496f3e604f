"""The running gateway, as a shell command or the bridge sees it."""

from dataclasses import dataclass
from typing import Protocol

from gateway.domain.delivery import Origin
from gateway.domain.ids import DeliveryId
from gateway.domain.question import Action, Surface


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """A message for a target (SPEC §3); the same `idempotency_key` again sends nothing new.

    `wait_ms` is how long to wait for the platform's id.
    """

    target: str
    text: str
    attachments: tuple[str, ...] = ()
    idempotency_key: str | None = None
    origin: Origin = Origin.SEND
    wait_ms: int = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """The platform has it, as these messages."""

    platform: str
    chat: str
    message_ids: tuple[str, ...]
    delivery: DeliveryId
    thread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision that counts; with `votes_needed` the question is still open for others."""

    question: str
    action: Action
    votes_needed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """Whether another agent may use a tool of its own; `preview` is what it would be given.

    The card is shown in the conversation of `session_key`, where `requester` decides, or without
    them in the home channel, where an admin does.
    """

    id: str
    agent: str
    tool: str
    description: str
    preview: str
    session_key: str | None = None
    requester: str | None = None


class GatewayClient(Protocol):
    """The running gateway, as a shell command or the bridge sees it."""

    async def send(self, request: SendRequest) -> SendResult:
        """Return once the platform gave its id.

        Raises:
            GatewayNotRunning: At once, nothing is queued.
            GatewayRefused: With a code of the control API.
        """
        ...

    async def decide(
        self, question: str, *, action: Action, surface: Surface = Surface.CLI, reason: str = ""
    ) -> Decided:
        """Decide a question, by its id or a prefix of it.

        Raises:
            GatewayNotRunning: At once.
            GatewayRefused: With a code of the control API; `details` say who was first.
        """
        ...

    async def ask_permission(self, request: PermissionRequest) -> str:
        """Show a person what another agent wants to do; return the question's id at once.

        Raises:
            GatewayNotRunning: At once.
            GatewayRefused: Nobody can be asked.
        """
        ...
