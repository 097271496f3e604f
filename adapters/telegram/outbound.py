"""What a delivery looks like in the words of the Bot API. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from telegram import (
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    MessageEntity,
    ReplyParameters,
    User,
)

from adapters.notes import notes_of
from adapters.telegram.buttons import Key
from adapters.telegram.config import ReplyTo
from adapters.telegram.forms import Ask
from adapters.telegram.payload import Payload
from adapters.telegram.rich import Builder, Entity, sendable
from gateway.domain.delivery import Delivery, Mark
from gateway.domain.ids import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The text of one message and what hangs on it."""

    text: str
    entities: tuple[MessageEntity, ...] = ()
    keyboard: InlineKeyboardMarkup | None = None

    def plain(self) -> "Shown":
        """Return it without formatting."""
        return replace(self, entities=())


def shown_of(delivery: Delivery, payload: Payload, *, marks: frozenset[Mark]) -> Shown:
    """Return a message as it is sent, and as it is compared later; marks are said above it."""
    notes = notes_of(marks)
    body = Builder()
    for note in notes:
        body.add(note, "italic")
        body.add("\n")
    before = body.units
    body.add(sendable(delivery.body))
    entities = (
        *body.build().entities,
        *(replace(entity, offset=entity.offset + before) for entity in payload.entities),
    )
    return Shown(
        text=body.build().text,
        entities=entities_of(entities),
        keyboard=keyboard_of(payload.rows),
    )


def entities_of(entities: Sequence[Entity]) -> tuple[MessageEntity, ...]:
    """Return entities as the library takes them."""
    return tuple(
        MessageEntity(
            type=entity.type,
            offset=entity.offset,
            length=entity.length,
            url=entity.url or None,
            language=entity.language or None,
        )
        for entity in entities
    )


def keyboard_of(rows: Sequence[Sequence[Key]]) -> InlineKeyboardMarkup | None:
    """Return the buttons of a message, None without any."""
    if not rows:
        return None
    return InlineKeyboardMarkup(
        [
            [
                InlineKeyboardButton(key.label, callback_data=key.data, style=key.style or None)
                for key in row
            ]
            for row in rows
        ]
    )


def prompt_of(ask: Ask, place: Place) -> tuple[Shown, ForceReply]:
    """Return the message that opens the reply field: in a group, of the person asked alone."""
    entities: tuple[MessageEntity, ...] = ()
    if place.participant.isdecimal():
        person = User(id=int(place.participant), first_name="", is_bot=False)
        entities = (MessageEntity(type="text_mention", offset=0, length=4, user=person),)
    field = ForceReply(
        selective=True if entities else None, input_field_placeholder=ask.placeholder or None
    )
    return Shown(text=ask.prompt, entities=entities), field


def quotes(setting: ReplyTo, payload: Payload) -> bool:
    """Whether a message of a reply quotes what it answers."""
    return setting is ReplyTo.ALL or (setting is ReplyTo.FIRST and payload.index == 0)


def quoting(native_id: str | None) -> ReplyParameters | None:
    """Return the quote of a message that may be gone by now."""
    if native_id is None or not native_id.isdecimal():
        return None
    return ReplyParameters(message_id=int(native_id), allow_sending_without_reply=True)


def caption_of(payload: Payload, marks: frozenset[Mark]) -> str:
    """Return the line under a file: its name, by which it is recognised, and how it came."""
    return "\n".join([*notes_of(marks), payload.name])
