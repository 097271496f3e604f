"""Deliveries in columns."""

from gateway.domain.delivery import Delivery, DeliveryKind, Mark, Origin
from gateway.domain.ids import DeliveryId, MessageId
from store.codec.columns import RowLike, clean
from store.codec.files import files_from_json
from store.codec.places import place_from_row


def marks_to_text(marks: frozenset[Mark]) -> str:
    """Return the text of the `marks` column."""
    return ",".join(sorted(mark.value for mark in marks))


def marks_from_text(text: str) -> frozenset[Mark]:
    """Read the `marks` column."""
    return frozenset(mark for mark in Mark if mark.value in text.split(","))


def delivery_from_row(row: RowLike) -> Delivery:
    """Read a row of `store.sql.columns.DELIVERY`."""
    return Delivery(
        id=DeliveryId(row["id"]),
        place=place_from_row(row),
        kind=DeliveryKind(row["kind"]),
        body=clean(row["body"]),
        payload=clean(row["payload"]),
        key=clean(row["idem_key"]),
        attempt=row["attempts"],
        edits=None if row["edits_native_id"] is None else clean(row["edits_native_id"]),
        marks=marks_from_text(row["marks"]),
        origin=Origin(row["origin"]),
        message=None if row["message_id"] is None else MessageId(row["message_id"]),
        files=files_from_json(row["files"]),
    )
