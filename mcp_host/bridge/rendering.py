"""Domain values as the tools return them. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, assert_never

from gateway.domain.conversation import Channel, ConversationView, Role, StoredMessage
from gateway.domain.events import (
    Gap,
    MessageStored,
    QuestionAsked,
    QuestionSettled,
    StoredEvent,
)
from gateway.domain.form import FieldKind, Form, FormField, Unset
from gateway.domain.message import Attachment
from gateway.domain.question import Question, QuestionKind
from mcp_host.bridge import shapes

MAX_CONTENT: Final = 4_000
MAX_LAST: Final = 200

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def ms(at: datetime) -> int:
    """Return a time as the tools write it."""
    return (at - _EPOCH) // _MILLISECOND


def role_of(role: str) -> Literal["user", "assistant"]:
    """Return who speaks: what was posted through us is the bot's word too."""
    return "user" if role == Role.USER else "assistant"


def conversation(view: ConversationView) -> shapes.Conversation:
    """Return a line of a list."""
    last = view.last_message
    shown = shapes.Conversation(
        session_key=view.session_key,
        session_id=str(view.session),
        platform=view.place.platform,
        chat_type=view.place.chat_type.value,
        display_name=view.display_name,
        chat_name=view.chat_name,
        user_name=view.user_name,
        updated_at=ms(view.updated_at),
    )
    if last is not None:
        shown["last_message"] = shapes.LastMessage(
            id=str(last.id),
            role=role_of(last.role),
            content=last.text[:MAX_LAST],
            timestamp=ms(last.at),
        )
    return shown


def whole_conversation(view: ConversationView) -> shapes.WholeConversation:
    """Return all there is to say of one."""
    return shapes.WholeConversation(
        **conversation(view),
        chat_id=view.place.chat,
        thread_id=view.place.thread or None,
        created_at=ms(view.created_at),
        message_count=view.message_count,
        input_tokens=view.input_tokens,
        output_tokens=view.output_tokens,
        total_tokens=view.input_tokens + view.output_tokens,
    )


def message(stored: StoredMessage) -> shapes.Message:
    """Return a message, its text cut where it is too long."""
    return shapes.Message(
        id=str(stored.id),
        role=role_of(stored.role),
        content=stored.text[:MAX_CONTENT],
        truncated=len(stored.text) > MAX_CONTENT,
        timestamp=ms(stored.at),
        attachments=[attachment(item) for item in stored.attachments],
    )


def attachment(item: Attachment) -> shapes.Attachment:
    """Return what is known of a file."""
    return shapes.Attachment(
        type=item.kind.value, name=item.name, media_type=item.media_type, size=item.size
    )


def channel(found: Channel) -> shapes.Channel:
    """Return a place to send to."""
    return shapes.Channel(
        target=found.target,
        platform=found.platform,
        name=found.name,
        chat_type=found.chat_type,
    )


def event(stored: StoredEvent) -> shapes.Event:
    """Return an event."""
    at: dict[str, Any] = {
        "cursor": stored.cursor,
        "session_key": stored.session_key,
        "timestamp": ms(stored.at),
    }
    match stored.fact:
        case MessageStored() as said:
            return shapes.MessageEvent(
                **at,
                type="message",
                message_id=str(said.message),
                role=role_of(said.role),
                content=said.text[:MAX_CONTENT],
                truncated=len(said.text) > MAX_CONTENT,
                author=_author(said),
                attachments=said.attachments,
            )
        case QuestionAsked() as asked:
            return shapes.AskedEvent(
                **at,
                type="approval_requested",
                approval_id=asked.question,
                kind=asked.kind.value,
                server=asked.server,
                tool=asked.tool,
                requested_by=str(asked.requester),
                expires_at=ms(asked.expires_at),
            )
        case QuestionSettled() as settled:
            return shapes.SettledEvent(
                **at,
                type="approval_resolved",
                approval_id=settled.question,
                kind=settled.kind.value,
                decision=settled.action.value,
                decided_by=None if settled.by is None else str(settled.by),
                decided_via=settled.via.value,
            )
        case _:
            assert_never(stored.fact)


def gap(found: Gap) -> shapes.GapBounds:
    """Return what is missing between two cursors."""
    reason: Literal["pruned", "reset"] = "pruned" if found.reason == "pruned" else "reset"
    return {"from": found.after, "to": found.next, "reason": reason}


def approval(question: Question, arguments: object) -> shapes.Approval:
    """Return an open question; `arguments` are those its card shows."""
    shown = shapes.Approval(
        id=question.id,
        kind=_kind(question.kind),
        server=question.server,
        tool=question.tool,
        arguments=_object_or_none(arguments),
        requested_by=str(question.requester),
        session_key=question.place.session_key,
        created_at=ms(question.created_at),
        expires_at=ms(question.expires_at),
        actions=[action.value for action in question.actions],
    )
    if question.form is not None:
        shown["message"] = question.form.message
        shown["schema"] = form_schema(question.form)
    elif question.body:
        shown["message"] = question.body
    return shown


def form_schema(form: Form) -> dict[str, Any]:
    """Return a form as the schema of its answers."""
    return {
        "type": "object",
        "properties": {field.name: _field_schema(field) for field in form.fields},
        "required": [field.name for field in form.fields if field.required],
    }


_TYPE_OF: Final[Mapping[FieldKind, str]] = {
    FieldKind.BOOLEAN: "boolean",
    FieldKind.NUMBER: "number",
    FieldKind.INTEGER: "integer",
    FieldKind.MULTI: "array",
}


def _field_schema(field: FormField) -> dict[str, Any]:
    if field.schema is not None:
        return dict(field.schema)
    choices = [{"const": item.value, "title": item.label} for item in field.options]
    found: dict[str, Any] = {"title": field.label}
    if field.kind is not FieldKind.JSON:
        found["type"] = _TYPE_OF.get(field.kind, "string")
    if choices and field.kind is FieldKind.MULTI:
        found["items"] = {"anyOf": choices}
    elif choices:
        found["oneOf"] = choices
    if field.help:
        found["description"] = field.help
    if not isinstance(field.default, Unset):
        found["default"] = field.default
    return found


def _author(said: MessageStored) -> str | None:
    """Return who wrote a message: nobody's account for the agent, a way for what was posted."""
    return None if said.role == Role.ASSISTANT else str(said.author).removesuffix(":")


def _kind(kind: QuestionKind) -> Literal["tool_call", "elicitation", "url", "sampling"]:
    match kind:
        case QuestionKind.ELICITATION:
            return "elicitation"
        case QuestionKind.URL:
            return "url"
        case QuestionKind.SAMPLING:
            return "sampling"
        case QuestionKind.TOOL_CALL | QuestionKind.ARGUMENTS | QuestionKind.CHOICE:
            return "tool_call"


def _object_or_none(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]
