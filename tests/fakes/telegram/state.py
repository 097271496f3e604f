"""What the service knows: bots, people, chats and messages, as plain values. Knows no HTTP."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

Json = dict[str, Any]
ChatKind = Literal["private", "group", "supergroup", "channel"]
BotStatus = Literal["member", "administrator", "restricted", "left", "kicked"]

GENERAL_TOPIC: Final = 1
"""A forum's own topic: its messages carry no thread, and sends must not name it."""


@dataclass(slots=True, kw_only=True)
class Person:
    """A human account, or another bot that takes part in groups."""

    id: int
    first_name: str
    username: str | None = None
    language_code: str = "en"
    is_bot: bool = False


@dataclass(slots=True, kw_only=True)
class StoredFile:
    """A file that was uploaded by a person or by the bot; `size` may lie, to try the limits."""

    __pydantic_config__: ClassVar[Json] = {"ser_json_bytes": "base64", "val_json_bytes": "base64"}

    id: str
    name: str
    media_type: str
    size: int
    data: bytes
    path: str | None = None
    """Where it can be downloaded, once `getFile` was asked."""


@dataclass(slots=True, kw_only=True)
class Message:
    """One message as everybody in the chat sees it; `text` is the caption when there is media."""

    id: int
    chat_id: int
    date: int
    by_bot: bool
    sender: int | None = None
    sender_chat: int | None = None
    stand_in: bool = False
    """Whether a message of a chat names one of Telegram's own accounts as its sender."""
    text: str = ""
    entities: list[Json] = field(default_factory=list[Json])
    media: Json = field(default_factory=dict[str, Any])
    notice: Json = field(default_factory=dict[str, Any])
    """What happened to the chat, when nobody wrote it."""
    markup: Json | None = None
    reply_to: int | None = None
    quote: str | None = None
    thread: int | None = None
    album: str | None = None
    silent: bool = False
    protected: bool = False
    preview: Json | None = None
    edit_date: int | None = None
    deleted: bool = False
    past: list[str] = field(default_factory=list[str])
    """The texts it had before it was edited, oldest first."""
    reactions: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    """Who reacted with what; the bot's own reaction is under the bot's id."""

    @property
    def buttons(self) -> list[list[str]]:
        """The labels of the inline keyboard, row by row."""
        return [[button["text"] for button in row] for row in self.keyboard]

    @property
    def labels(self) -> list[str]:
        return [label for row in self.buttons for label in row]

    @property
    def keyboard(self) -> list[list[Json]]:
        return [] if self.markup is None else self.markup.get("inline_keyboard", [])

    def data_of(self, label: str) -> str | None:
        """Return the callback data behind a label, None when there is no such button."""
        found = (b for row in self.keyboard for b in row if b["text"] == label)
        button = next(found, None)
        return None if button is None else button.get("callback_data")


@dataclass(slots=True, kw_only=True)
class Topic:
    id: int
    name: str
    closed: bool = False


@dataclass(slots=True, kw_only=True)
class Draft:
    """A preview of what the bot is writing; it fades by itself."""

    id: int
    text: str
    until: float


@dataclass(slots=True, kw_only=True)
class ChatAction:
    at: float
    action: str
    thread: int | None


@dataclass(slots=True, kw_only=True)
class Chat:
    """One chat as one bot has it."""

    id: int
    kind: ChatKind
    title: str = ""
    username: str | None = None
    forum: bool = False
    bot_status: BotStatus = "member"
    blocked: bool = False
    started: bool = True
    """Whether the person of a private chat ever wrote: a bot cannot begin a conversation."""
    migrated_to: int | None = None
    members: dict[int, str] = field(default_factory=dict[int, str])
    topics: dict[int, Topic] = field(default_factory=dict[int, Topic])
    messages: dict[int, Message] = field(default_factory=dict[int, Message])
    last_message: int = 0
    """Its own counter; private chats and groups use their bot's."""
    draft: Draft | None = None
    actions: list[ChatAction] = field(default_factory=list[ChatAction])

    @property
    def broad(self) -> bool:
        """Whether it is a supergroup or a channel, which count their own messages."""
        return self.kind in ("supergroup", "channel")

    @property
    def shown(self) -> list[Message]:
        return [message for message in self.messages.values() if not message.deleted]


@dataclass(slots=True, kw_only=True)
class Update:
    """Something a bot has not confirmed yet; `queue` keeps those of one chat in order."""

    id: int
    at: float
    queue: int
    kind: str
    payload: Json
    repeats: int = 0
    """How often it is handed out once more although it was confirmed."""

    @property
    def body(self) -> Json:
        return {"update_id": self.id, self.kind: self.payload}


@dataclass(slots=True, kw_only=True)
class Webhook:
    url: str
    secret: str | None
    max_connections: int
    last_error_at: int | None = None
    last_error: str | None = None


@dataclass(slots=True, kw_only=True)
class Query:
    """A press of a button, and what the bot answered."""

    id: str
    at: float
    chat_id: int
    message_id: int
    by: int
    data: str
    answered: bool = False
    text: str = ""
    alert: bool = False


@dataclass(slots=True, kw_only=True)
class Bot:
    """An account of a program, with everything only it sees."""

    token: str
    id: int
    username: str
    first_name: str
    reads_all: bool = False
    """Whether group privacy is off."""
    topics_in_private: bool = False
    allowed: list[str] | None = None
    last_message: int = 0
    """One counter for all private chats and groups."""
    last_update: int = 100_000
    last_query: int = 0
    updates: list[Update] = field(default_factory=list[Update])
    handed_out: list[Update] = field(default_factory=list[Update])
    """The last confirmed updates, so that a test can have them delivered again."""
    webhook: Webhook | None = None
    chats: dict[int, Chat] = field(default_factory=dict[int, Chat])
    queries: dict[str, Query] = field(default_factory=dict[str, Query])
    commands: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])


@dataclass(slots=True, kw_only=True)
class World:
    """Everything; bots are found by their token."""

    bots: dict[str, Bot] = field(default_factory=dict[str, Bot])
    people: dict[int, Person] = field(default_factory=dict[int, Person])
    files: dict[str, StoredFile] = field(default_factory=dict[str, StoredFile])
    last_file: int = 0
    ahead: float = 0
    """How far its clock was put forward."""
