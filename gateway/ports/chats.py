"""What the core needs of chat platforms: adapters, and how texts and cards are laid out."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.domain.delivery import Delivery, Part, Receipt
from gateway.domain.files import FileLimits
from gateway.domain.form import Form
from gateway.domain.health import Health
from gateway.domain.ids import (
    Place,
    QuestionId,
)
from gateway.domain.message import InboundEvent
from gateway.domain.preview import Preview
from gateway.domain.question import Button


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a platform can do, read as data instead of asked by name.

    `max_inline` is how many of the platform's units of arguments a card shows before they
    become a file (CONTRACTS §e), None without a cap. `uploads` false: longer ones are refused.
    `files` are the limits of files that are sent, None where people are told where they are kept.
    """

    max_text: int | None
    buttons: bool
    max_inline: int | None = None
    edits: bool = False
    threads: bool = False
    uploads: bool = False
    modal_fields: int = 0
    files: FileLimits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardView:
    """What a card shows, before a platform's renderer lays it out; every text is untrusted.

    `arguments` is indented JSON, redacted and escaped, "" when there are none. `lines` are
    short facts (who asks, when it expires, the id). `field` is what a typed reply answers,
    with `reply_token` the button row that carries it. `form` is what the answering button opens
    on a platform with native forms: `keys` name its fields, `answers` is what they hold so far.
    `closed` is the last line of a closed card; it then has no buttons.
    """

    question: QuestionId
    short: str
    title: str
    text: str
    arguments: str = ""
    lines: tuple[str, ...] = ()
    buttons: tuple[Button, ...] = ()
    reply_token: str = ""
    reply_hint: str = ""
    field: str = ""
    form: Form | None = None
    keys: tuple[str, ...] = ()
    answers: Mapping[str, object] = dataclasses.field(default_factory=dict[str, object])
    closed: str = ""


class Renderer(Protocol):
    """Lays texts and cards out for one platform; pure, and no visible character is lost."""

    @property
    def capabilities(self) -> Capabilities: ...

    def text(self, markdown: str) -> tuple[Part, ...]:
        """Return the messages of a reply; none for an empty text."""
        ...

    def card(self, view: CardView) -> tuple[Part, Part | None]:
        """Return the card, and the file that must go first when the arguments do not fit it."""
        ...

    def closed_card(self, view: CardView) -> Part:
        """Return the edit that closes a card."""
        ...


class EventSink(Protocol):
    """Where adapters put what arrives."""

    async def emit(self, event: InboundEvent, *, position: tuple[str, str] | None = None) -> None:
        """Accept a normalised event; returns once it is stored (or known, or refused).

        Raises:
            StoreBusy: Nothing is stored; the platform must not be acknowledged.
        """
        ...

    def backlog(self, *, platform: str, account: str, waits: bool) -> None:
        """Hear whether more of what an account missed is about to come.

        While it `waits` its conversations begin no turn, for a bounded time: what was said while
        nobody listened is answered once.
        """
        ...


class Adapter(Protocol):
    """One account on one chat platform."""

    @property
    def platform(self) -> str: ...

    @property
    def account(self) -> str: ...

    async def run(self, sink: EventSink) -> None:
        """Stay connected and feed `sink` until cancelled or the platform ends."""
        ...

    async def send(self, delivery: Delivery) -> Receipt:
        """Deliver one text, card, file or edit and return the platform's id for it.

        Raises:
            DeliveryDeferred: The platform wants us to retry later.
            DeliveryUnsure: No answer; it may have arrived.
            DeliveryRejected: The platform will never accept this message.
        """
        ...

    async def settle_unsure(self, delivery: Delivery) -> Receipt | None:
        """Find a send whose answer was lost; None when it certainly did not arrive.

        Raises:
            DeliveryUnsure: It cannot be found out.
        """
        ...


class PressAnswering(Protocol):
    """Optional port: an adapter that must answer a press by itself (a toast, an ephemeral)."""

    async def answer_press(self, place: Place, interaction: str, text: str) -> None:
        """Show `text` to the presser alone; "" only acknowledges."""
        ...


class HealthReporting(Protocol):
    """Optional port: an adapter that knows whether its platform is connected."""

    @property
    def health(self) -> Health:
        """How the connection is now; `CONNECTED` only while it is receiving."""
        ...


class Typing(Protocol):
    """Optional port: an adapter that can show that an answer is being worked on."""

    async def show_typing(self, place: Place) -> None:
        """Show it for some seconds; cosmetic: left out when the chat is busy, never raises."""
        ...


class Streaming(Protocol):
    """Optional port: an adapter that can show a reply while it is made.

    All of it is silent and cosmetic. The reply comes through `Adapter.send` as every other.
    """

    def opening(self, preview: Preview) -> Part | None:
        """Return the silent message that a preview begins with; pure.

        It goes through `Adapter.send`, so its id outlives the process; an edit without a body
        takes it away when the reply has been sent. None: what is shown is no message and fades by
        itself, at the latest when the reply comes.
        """
        ...

    def preview_wait(self, place: Place) -> float:
        """Return for how many seconds nothing may be shown in a chat, 0 when something may now.

        The adapter's own pace, and the room that is left beside what has to be sent.
        """
        ...

    async def show_preview(self, preview: Preview) -> None:
        """Show it; called only once its message is known, where there is one. Makes no new message.

        Raises:
            DeliveryDeferred: The platform wants nothing in this chat for a while.
            DeliveryUnsure: No answer; it may be shown.
            AdapterError: It cannot be shown (any more).
        """
        ...


class Reacting(Protocol):
    """Optional port: an adapter that can mark a person's message with a reaction."""

    async def show_waiting(self, place: Place, native_id: str) -> bool:
        """Mark a message as one that is answered later; False when it cannot be. Never raises."""
        ...
