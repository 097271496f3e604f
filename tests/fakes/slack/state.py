"""What the service knows: workspaces, people, channels and messages, as plain values. Knows no HTTP."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

Json = dict[str, Any]
ChannelKind = Literal["channel", "group", "im", "mpim"]

APP: Final = "A000000001"
_SCOPES: Final = (
    "app_mentions:read assistant:write channels:history channels:read chat:write commands"
    " files:read files:write groups:history groups:read im:history im:read im:write mpim:history"
    " mpim:read reactions:read reactions:write users:read"
)
ALL_SCOPES: Final = frozenset(_SCOPES.split())


@dataclass(slots=True, kw_only=True)
class Person:
    """A member of a workspace, or another app's bot."""

    id: str
    name: str
    is_bot: bool = False


@dataclass(slots=True, kw_only=True)
class StoredFile:
    """A file; it can be downloaded once its upload is complete."""

    __pydantic_config__: ClassVar[Json] = {"ser_json_bytes": "base64", "val_json_bytes": "base64"}

    id: str
    name: str
    title: str
    media_type: str
    size: int
    data: bytes = b""
    uploaded: bool = False
    shared_at: str = ""


@dataclass(slots=True, kw_only=True)
class Message:
    """One message as people see it; `ephemeral_to` alone sees it when it is set."""

    ts: str
    channel: str
    user: str
    by_bot: bool = False
    text: str = ""
    blocks: list[Json] = field(default_factory=list[Json])
    attachments: list[Json] = field(default_factory=list[Json])
    thread_ts: str = ""
    subtype: str = ""
    metadata: Json | None = None
    edited: str = ""
    files: list[str] = field(default_factory=list[str])
    reactions: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    ephemeral_to: str = ""
    deleted: bool = False
    streaming: bool = False
    past: list[str] = field(default_factory=list[str])
    """What it showed before it was edited, oldest first."""
    unfurls: bool = True

    @property
    def elements(self) -> list[Json]:
        return [e for b in self.blocks if b["type"] == "actions" for e in b["elements"]]

    @property
    def labels(self) -> list[str]:
        """The labels of its buttons."""
        return [e["text"]["text"] for e in self.elements if e["type"] == "button"]


@dataclass(slots=True, kw_only=True)
class Channel:
    id: str
    kind: ChannelKind
    name: str = ""
    members: list[str] = field(default_factory=list[str])
    messages: dict[str, Message] = field(default_factory=dict[str, Message])
    archived: bool = False
    statuses: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """What the assistant said it is doing, by thread."""
    prompts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    titles: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(slots=True, kw_only=True)
class View:
    """An open modal."""

    id: str
    team: str
    user: str
    body: Json
    hash: str
    open: bool = True


@dataclass(slots=True, kw_only=True)
class Team:
    """A workspace into which the app is installed."""

    id: str
    token: str
    bot_user: str
    bot_id: str
    scopes: frozenset[str] = ALL_SCOPES
    people: dict[str, Person] = field(default_factory=dict[str, Person])
    channels: dict[str, Channel] = field(default_factory=dict[str, Channel])
    files: dict[str, StoredFile] = field(default_factory=dict[str, StoredFile])


@dataclass(slots=True, kw_only=True)
class World:
    """Everything; one app, installed into each of its workspaces under a token of its own."""

    app_token: str = "xapp-1-A000000001-test"
    signing_secret: str = "a-signing-secret-of-a-test"
    teams: dict[str, Team] = field(default_factory=dict[str, Team])
    views: dict[str, View] = field(default_factory=dict[str, View])
    last_ts: int = 0
    last_number: int = 0
    ahead: float = 0

    def number(self) -> int:
        self.last_number += 1
        return self.last_number

    def new_ts(self, now: float) -> str:
        """Return a time that no other message has."""
        self.last_ts = max(self.last_ts + 100, int(now * 1_000_000) // 100 * 100)
        return f"{self.last_ts // 1_000_000}.{self.last_ts % 1_000_000:06d}"
