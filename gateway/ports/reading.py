"""What reads the store: small ports, each method one bounded query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from gateway.domain.conversation import (
    Activity,
    Ambiguous,
    Channel,
    ConversationPage,
    ConversationView,
    SessionView,
    Spent,
    StoredMessage,
)
from gateway.domain.delivery import Delivery, DeliveryStatus, Neighbours, SentMessage
from gateway.domain.events import EventPage
from gateway.domain.form import FormState
from gateway.domain.ids import (
    Actor,
    ConversationId,
    Cursor,
    DeliveryId,
    InboundId,
    MessageId,
    Place,
    QuestionId,
    RuleId,
    SessionId,
    TurnId,
)
from gateway.domain.operations.inbound import (
    StoredInbound,
)
from gateway.domain.operations.pairing import Pairing, PairingState
from gateway.domain.operations.turns import (
    Exchange,
    TurnEnd,
)
from gateway.domain.operations.upkeep import (
    AddAudit,
    StandingRule,
)
from gateway.domain.question import Button, Question, Record
from gateway.domain.tools import (
    AgreedTool,
    ToolSpec,
)
from gateway.ports.files import Files


class EventReader(Protocol):
    async def head(self) -> Cursor: ...

    async def after(
        self, cursor: Cursor, *, session_key: str | None = None, limit: int
    ) -> EventPage:
        """Events behind `cursor` in commit order; a gap is said, never skipped."""
        ...

    async def wait(self, cursor: Cursor, *, session_key: str | None = None) -> None:
        """Return when `after` has something; cancelling it frees the waiter."""
        ...


class Inbox(Protocol):
    async def controls(self) -> Sequence[StoredInbound]:
        """Control events that were accepted and are not worked off, oldest first."""
        ...

    async def find(self, inbound: InboundId) -> StoredInbound | None: ...

    async def waiting(self, place: Place) -> int:
        """How many inputs of the turn lane wait in a conversation."""
        ...

    async def activity(self, place: Place) -> Activity:
        """Whether a conversation works, waits for an answer, or has nothing left to do."""
        ...

    async def threads(self, *, limit: int) -> Sequence[str]:
        """Session keys of the threads we were called into, newest first."""
        ...

    async def last_heard(
        self, platform: str, account: str, *, limit: int
    ) -> Sequence[tuple[Place, str]]:
        """Conversations of an account, those of late first, with the platform's id of what was said last.

        "" where nothing was said that has one.
        """
        ...

    async def last_turn(self, place: Place) -> tuple[TurnId, TurnEnd | None] | None:
        """The newest turn of a conversation and how it ended, None while it runs."""
        ...

    async def exchange_before(self, turn: TurnId) -> Exchange | None:
        """The last exchange of a turn's session before that turn, None when there is none left."""
        ...


class Conversations(Protocol):
    async def page(
        self,
        *,
        platform: str | None = None,
        search: str | None = None,
        before: str | None = None,
        limit: int,
    ) -> ConversationPage: ...

    async def find(self, session_key: str) -> ConversationView | None: ...

    async def sessions(
        self, conversation: ConversationId, *, limit: int
    ) -> Sequence[SessionView]: ...

    async def session(self, session: SessionId) -> SessionView | None: ...

    async def numbered(self, conversation: ConversationId, n: int) -> SessionView | None:
        """The session of that number in a conversation."""
        ...

    async def spent(self, conversation: ConversationId) -> Spent: ...

    async def messages(
        self,
        session: SessionId,
        *,
        before: MessageId | None = None,
        after: MessageId | None = None,
        limit: int,
    ) -> Sequence[StoredMessage]:
        """Messages people can read, chronological: the newest `limit`, or next to a bound."""
        ...

    async def session_of(
        self, conversation: ConversationId, message: MessageId
    ) -> SessionView | None:
        """The session a message of this conversation belongs to; None when it is no such message."""
        ...

    async def message(
        self, conversation: ConversationId, message: MessageId
    ) -> StoredMessage | None:
        """One message that people can read, with what is attached to it."""
        ...

    async def history(self, session: SessionId, *, limit: int) -> Sequence[StoredMessage]:
        """What the model may see: the newest `limit`, chronological, a summary first."""
        ...


class Questions(Protocol):
    async def find(self, id_or_short: str) -> Question | Ambiguous | None:
        """Find by id, by the short id of a pending one, or by an unambiguous prefix."""
        ...

    async def of_step(self, turn: TurnId, step: int) -> Question | None:
        """The newest question a step asked."""
        ...

    async def pending(
        self,
        *,
        turn: TurnId | None = None,
        shown_in: Place | None = None,
        due: datetime | None = None,
        limit: int = 200,
    ) -> Sequence[Question]:
        """Pending ones of every kind, oldest first; `due` keeps those that expire by then."""
        ...

    async def open(self, *, limit: int) -> Sequence[Question]:
        """Pending ones that may be listed to others (not guided mode's)."""
        ...

    async def page(self, *, before: str | None = None, limit: int) -> Sequence[Question]:
        """All, newest first; `before` is a question id."""
        ...

    async def records(self, questions: Sequence[QuestionId]) -> Mapping[QuestionId, Record]:
        """What the books hold of these questions."""
        ...

    async def by_token(self, token: str) -> tuple[Question, Button] | None: ...

    async def buttons(self, question: QuestionId) -> Sequence[Button]:
        """The buttons of a question in the order they were made, `label` left empty."""
        ...

    async def form_state(self, question: QuestionId) -> FormState | None: ...

    async def next_expiry(self) -> datetime | None: ...


class Rules(Protocol):
    async def match(self, spec: ToolSpec, *, session: SessionId | None) -> RuleId | None:
        """The standing rule that allows this very definition of a tool."""
        ...

    async def live(self) -> Sequence[StandingRule]: ...

    async def agreed(self, server: str, tool: str) -> AgreedTool | None:
        """A tool as it was when somebody last allowed it."""
        ...


class Channels(Protocol):
    async def page(
        self,
        *,
        platform: str | None = None,
        search: str | None = None,
        before: str | None = None,
        limit: int,
    ) -> Sequence[Channel]:
        """By platform and name; `before` is the target of the last one of the page before."""
        ...

    async def resolve(self, target: str) -> Channel | Ambiguous | None:
        """Resolve `platform`, `platform:chat`, `platform:chat:thread`, `platform:#name` (SPEC §3).

        Never falls back to the home channel.
        """
        ...

    async def direct(self, person: Actor, *, limit: int) -> Sequence[Place]:
        """The direct chats in which a person has written to us, the latest first."""
        ...


class Deliveries(Protocol):
    async def group(self, group_key: str) -> Sequence[DeliveryStatus]: ...

    async def unsure(self, platform: str, account: str) -> Sequence[Delivery]: ...

    async def cards(self, place: Place) -> Sequence[Delivery]:
        """The newest sent card of each pending question shown in a conversation, oldest first."""
        ...

    async def next_at(self, platform: str, account: str) -> datetime | None:
        """When the next ready delivery of an account may be tried."""
        ...


class SentMessages(Protocol):
    """What adapters ask about messages by the ids their platform gave them."""

    async def find(
        self, platform: str, account: str, chat: str, native_ids: Sequence[str]
    ) -> SentMessage | None:
        """Return the newest message of a chat that goes by one of these ids."""
        ...

    async def neighbours(self, delivery: DeliveryId) -> Neighbours:
        """The newest known ids of a delivery's account, sent and received."""
        ...

    async def answered(self, delivery: DeliveryId) -> str | None:
        """The id of the newest message that the turn behind a delivery answers."""
        ...

    async def parked(self, platform: str, account: str) -> Mapping[str, datetime]:
        """Chats whose platform asked to be left alone in them, and until when; it may be over."""
        ...


class Books(Protocol):
    async def usage(self, *, since: datetime, actor: Actor | None = None) -> Mapping[str, int]:
        """Tokens by model since then."""
        ...

    async def audit(self, *, before: int | None = None, limit: int) -> Sequence[AddAudit]: ...


class Pairings(Protocol):
    async def page(self, *states: PairingState, limit: int) -> Sequence[Pairing]:
        """People who were given a code, in one of the states, newest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """The read ports of one store."""

    events: EventReader
    inbox: Inbox
    conversations: Conversations
    questions: Questions
    rules: Rules
    channels: Channels
    deliveries: Deliveries
    files: Files
    sent: SentMessages
    books: Books
    pairings: Pairings


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreHealth:
    """`busy_since` is set while writes fail and are repeated; `broken` stops accepting for good.

    `reason` is why, in the words of the database.
    """

    busy_since: datetime | None = None
    reason: str = ""
    broken: str = ""
