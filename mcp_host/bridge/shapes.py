"""What the tools return, as types: their output schemas are made from these (CONTRACTS §c).

Times are epoch milliseconds; ids are texts, cursors are whole numbers.
"""

from typing import Any, Literal, NotRequired

# The standard library's own is none that pydantic can describe before Python 3.12.
from typing_extensions import TypedDict


class LastMessage(TypedDict):
    id: str
    role: Literal["user", "assistant"]
    content: str
    timestamp: int


class Conversation(TypedDict):
    session_key: str
    session_id: str
    platform: str
    chat_type: str
    display_name: str
    chat_name: str
    user_name: str
    updated_at: int
    last_message: NotRequired[LastMessage]


class ConversationList(TypedDict):
    count: int
    conversations: list[Conversation]
    next: NotRequired[str]


class WholeConversation(Conversation):
    chat_id: str
    thread_id: str | None
    created_at: int
    message_count: int
    input_tokens: int
    output_tokens: int
    total_tokens: int


class Attachment(TypedDict):
    type: Literal["image", "audio", "video", "voice", "file"]
    name: str
    media_type: str
    size: int | None


class Message(TypedDict):
    id: str
    role: Literal["user", "assistant"]
    content: str
    truncated: bool
    timestamp: int
    attachments: list[Attachment]


class MessageList(TypedDict):
    session_key: str
    count: int
    total_in_session: int
    messages: list[Message]
    next: NotRequired[str]


class FetchedAttachment(Attachment):
    path: NotRequired[str]
    data: NotRequired[str]
    error: NotRequired[str]


class AttachmentList(TypedDict):
    message_id: str
    count: int
    attachments: list[FetchedAttachment]


class MessageEvent(TypedDict):
    cursor: int
    type: Literal["message"]
    session_key: str
    timestamp: int
    message_id: str
    role: Literal["user", "assistant"]
    content: str
    truncated: bool
    author: str | None
    attachments: int


class AskedEvent(TypedDict):
    cursor: int
    type: Literal["approval_requested"]
    session_key: str
    timestamp: int
    approval_id: str
    kind: str
    server: str
    tool: str
    requested_by: str
    expires_at: int


class SettledEvent(TypedDict):
    cursor: int
    type: Literal["approval_resolved"]
    session_key: str
    timestamp: int
    approval_id: str
    kind: str
    decision: str
    decided_by: str | None
    decided_via: str


Event = MessageEvent | AskedEvent | SettledEvent

GapBounds = TypedDict("GapBounds", {"from": int, "to": int, "reason": Literal["pruned", "reset"]})


class EventList(TypedDict):
    events: list[Event]
    next_cursor: int
    gap: NotRequired[GapBounds]


class NextEvent(TypedDict):
    event: Event | None
    reason: NotRequired[Literal["timeout"]]
    next_cursor: int
    gap: NotRequired[GapBounds]


class Sent(TypedDict):
    success: Literal[True]
    platform: str
    chat_id: str
    message_id: str
    message_ids: NotRequired[list[str]]


class Channel(TypedDict):
    target: str
    platform: str
    name: str
    chat_type: str


class ChannelList(TypedDict):
    count: int
    channels: list[Channel]
    next: NotRequired[str]


class Approval(TypedDict):
    id: str
    kind: Literal["tool_call", "elicitation", "url", "sampling"]
    server: str
    tool: str
    arguments: dict[str, Any] | None
    requested_by: str
    session_key: str
    created_at: int
    expires_at: int
    message: NotRequired[str]
    schema: NotRequired[dict[str, Any]]
    actions: list[str]


class ApprovalList(TypedDict):
    count: int
    approvals: list[Approval]


class Resolved(TypedDict):
    resolved: bool
    approval_id: str
    decision: str
    votes_needed: NotRequired[int]
