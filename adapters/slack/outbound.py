"""What a delivery looks like in the words of the Web API. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from adapters.notes import notes_of
from adapters.slack.markdown import escape
from adapters.slack.markup import fallback, plain_blocks
from adapters.slack.payload import Payload
from gateway.domain.delivery import Delivery, Mark

EVENT: Final = "hermes_delivery"
"""The kind of the metadata that our messages carry."""

Json = Mapping[str, Any]


def shown_of(delivery: Delivery, payload: Payload, *, marks: frozenset[Mark]) -> dict[str, Any]:
    """Return text and blocks of a message, with a word above about how it came."""
    notes = [escape(note) for note in notes_of(marks)]
    plain = Mark.PLAIN in marks or not payload.blocks
    blocks: Sequence[Json] = plain_blocks(delivery.body) if plain else payload.blocks
    above = [{"type": "context", "elements": [{"type": "mrkdwn", "text": f"_{n}_"}]} for n in notes]
    text = payload.text or fallback(delivery.body)
    return {"text": " ".join((*notes, text)), "blocks": [*above, *blocks]}


def metadata_of(delivery: Delivery) -> Json:
    """Return what a message carries so that it is found again: which delivery it is."""
    return {"event_type": EVENT, "event_payload": {"delivery": fingerprint(delivery)}}


def fingerprint(delivery: Delivery) -> str:
    """Return what tells a delivery from every other one, also of another home with this bot."""
    kept = "\0".join((delivery.place.session_key, delivery.key, delivery.body, delivery.payload))
    digest = hashlib.sha256(kept.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{delivery.key[:60]}/{digest[:24]}"


def is_of(message: Json, delivery: Delivery) -> bool:
    """Whether a message of the history is what a delivery became."""
    metadata = cast("Json", message.get("metadata") or {})
    if metadata.get("event_type") != EVENT:
        return False
    kept = cast("Json", metadata.get("event_payload") or {})
    return kept.get("delivery") == fingerprint(delivery)


def comment_of(delivery: Delivery, payload: Payload, *, marks: frozenset[Mark]) -> str | None:
    """Return the words that go with files, None without any."""
    words = delivery.body if delivery.files else payload.name
    lines = [*notes_of(marks), words]
    return "\n".join(escape(line) for line in lines if line) or None
