"""Inbound events as the JSON of `inbound.payload`; `inbound.kind` says which value it is."""

import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, TypedDict, assert_never

from gateway.domain.canonical import canonical
from gateway.domain.ids import Actor, AttachmentId, ChatType, Place, SessionId
from gateway.domain.message import (
    Attachment,
    AttachmentKind,
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    InboundEvent,
    InboundMessage,
    MessageDeleted,
    MessageEdited,
)
from store.codec.columns import from_json, from_ms, ms

REMEMBERED: Final = 4_096
"""Places and people whose part of a payload is kept ready."""

_quoted: Final = json.JSONEncoder().encode


def event_kind(event: InboundEvent) -> str:
    """Return the `inbound.kind` of an event."""
    match event:
        case InboundMessage():
            return "message"
        case MessageEdited():
            return "edit"
        case MessageDeleted():
            return "delete"
        case CommandGiven():
            return "command"
        case ButtonPressed():
            return "press"
        case FormSubmitted():
            return "form"
        case _:
            assert_never(event)


def event_to_json(event: InboundEvent) -> str:
    """Return the payload of an event; any text survives, as escapes."""
    # Put together from parts, of which two are the same for most events of a conversation: to
    # encode it as a whole takes a tenth of an accept.
    own = canonical(_own_part(event))
    return (
        f'{{"place":{_place_to_json(event.place)},"sender":{_actor_to_json(event.sender)},'
        f'"native_id":{_quoted(event.native_id)},"dedupe":{_quoted(event.dedupe)},'
        f'"sent_at":{ms(event.sent_at)},{own[1:]}'
    )


@lru_cache(maxsize=REMEMBERED)
def _place_to_json(place: Place) -> str:
    return canonical(
        {
            "platform": place.platform,
            "account": place.account,
            "chat": place.chat,
            "chat_type": place.chat_type.value,
            "thread": place.thread,
            "participant": place.participant,
        }
    )


@lru_cache(maxsize=REMEMBERED)
def _actor_to_json(actor: Actor) -> str:
    return canonical(
        {
            "platform": actor.platform,
            "id": actor.id,
            "name": actor.name,
            "is_bot": actor.is_bot,
            # Few do; the rest need not carry it.
            **({"is_chat": True} if actor.is_chat else {}),
        }
    )


def event_from_json(kind: str, text: str) -> InboundEvent:
    """Read a payload back.

    Raises:
        ValueError: The text or the kind is damaged.
        KeyError: A part of the payload is missing.
    """
    raw: Mapping[str, Any] = from_json(text)
    frame = _frame(raw)
    match kind:
        case "message":
            return InboundMessage(
                **frame,
                text=raw["text"],
                attachments=tuple(_attachment(item) for item in raw["attachments"]),
                reply_to=raw["reply_to"],
                mentions_us=raw["mentions_us"],
                alone=raw.get("alone", False),
                toolsets=tuple(raw.get("toolsets", ())),
                album=raw.get("album", ""),
            )
        case "edit":
            return MessageEdited(**frame, edited=raw["edited"], text=raw["text"])
        case "delete":
            return MessageDeleted(**frame, deleted=raw["deleted"])
        case "command":
            return CommandGiven(
                **frame,
                name=raw["name"],
                argument=raw["argument"],
                mentions_us=raw.get("mentions_us", False),
                toolsets=tuple(raw.get("toolsets", ())),
                session=None if raw.get("session") is None else SessionId(raw["session"]),
            )
        case "press":
            return ButtonPressed(**frame, token=raw["token"], interaction=raw["interaction"])
        case "form":
            values = {
                name: value if isinstance(value, str) else tuple(value)
                for name, value in raw["values"].items()
            }
            return FormSubmitted(
                **frame, token=raw["token"], values=values, interaction=raw["interaction"]
            )
        case _:
            raise ValueError(f"unknown kind of event: {kind}")


def given_in(event: InboundEvent, *, otherwise: SessionId) -> SessionId:
    """Return the session an event was given in, as far as its payload says."""
    given = event.session if isinstance(event, CommandGiven) else None
    return otherwise if given is None else given


class _Frame(TypedDict):
    place: Place
    native_id: str
    dedupe: str
    sender: Actor
    sent_at: datetime


def _frame(raw: Mapping[str, Any]) -> _Frame:
    place, sender = raw["place"], raw["sender"]
    return _Frame(
        place=Place(
            platform=place["platform"],
            account=place["account"],
            chat=place["chat"],
            chat_type=ChatType(place["chat_type"]),
            thread=place["thread"],
            participant=place["participant"],
        ),
        native_id=raw["native_id"],
        dedupe=raw["dedupe"],
        sender=Actor(
            platform=sender["platform"],
            id=sender["id"],
            name=sender["name"],
            is_bot=sender["is_bot"],
            is_chat=sender.get("is_chat", False),
        ),
        sent_at=from_ms(raw["sent_at"]),
    )


def _own_part(event: InboundEvent) -> dict[str, object]:
    match event:
        case InboundMessage():
            return {
                "text": event.text,
                "attachments": [_attachment_to_plain(item) for item in event.attachments],
                "reply_to": event.reply_to,
                "mentions_us": event.mentions_us,
                # Few are; the rest need not carry it.
                **({"alone": True} if event.alone else {}),
                **({"album": event.album} if event.album else {}),
                **_toolsets_to_plain(event),
            }
        case MessageEdited():
            return {"edited": event.edited, "text": event.text}
        case MessageDeleted():
            return {"deleted": event.deleted}
        case CommandGiven():
            return {
                "name": event.name,
                "argument": event.argument,
                "mentions_us": event.mentions_us,
                **({} if event.session is None else {"session": event.session}),
                **_toolsets_to_plain(event),
            }
        case ButtonPressed():
            return {"token": event.token, "interaction": event.interaction}
        case FormSubmitted():
            values = {
                name: value if isinstance(value, str) else list(value)
                for name, value in event.values.items()
            }
            return {"token": event.token, "interaction": event.interaction, "values": values}
        case _:
            assert_never(event)


def _toolsets_to_plain(event: InboundMessage | CommandGiven) -> dict[str, object]:
    return {"toolsets": list(event.toolsets)} if event.toolsets else {}


def _attachment_to_plain(item: Attachment) -> dict[str, object]:
    return {
        "id": item.id,
        "kind": item.kind.value,
        "media_type": item.media_type,
        "name": item.name,
        "size": item.size,
        "ref": item.ref,
    }


def _attachment(raw: Mapping[str, Any]) -> Attachment:
    return Attachment(
        id=None if raw["id"] is None else AttachmentId(raw["id"]),
        kind=AttachmentKind(raw["kind"]),
        media_type=raw["media_type"],
        name=raw["name"],
        size=raw["size"],
        ref=raw["ref"],
    )
