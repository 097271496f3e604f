"""Places and actors in columns."""

from gateway.domain.ids import Actor, ChatType, Place
from store.codec.columns import RowLike, clean


def place_from_row(row: RowLike, *, prefix: str = "") -> Place:
    """Read the place of a conversation; `prefix` stands before each of its column names."""
    return Place(
        platform=clean(row[f"{prefix}platform"]),
        account=clean(row[f"{prefix}account"]),
        chat_type=ChatType(row[f"{prefix}chat_type"]),
        chat=clean(row[f"{prefix}chat_key"]),
        thread=clean(row[f"{prefix}thread_key"]),
        participant=clean(row[f"{prefix}participant"]),
    )


def actor_from_text(text: str, *, name: str = "") -> Actor:
    """Read the `platform:id` of a column."""
    return Actor.parse(clean(text), name=clean(name))


def actor_or_none(text: str | None) -> Actor | None:
    """Read an actor column that may be NULL."""
    return None if text is None else actor_from_text(text)
