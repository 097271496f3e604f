"""Rows of files: those a message came with, and those that go with a delivery."""

from collections.abc import Sequence

from gateway.domain.ids import DeliveryId, MessageId
from gateway.domain.message import Attachment
from store.codec import storable
from store.sql import files as sql
from store.work import Work


def announce(work: Work, message: MessageId, files: Sequence[Attachment]) -> None:
    """Write down files that a message came with and that are still to be fetched."""
    for file in files:
        ref = None if file.ref is None else storable(file.ref)
        work.run(sql.ANNOUNCED, {**_described(work, file), "message": message, "ref": ref})


def attach(
    work: Work, delivery: DeliveryId, message: MessageId | None, files: Sequence[Attachment]
) -> None:
    """Write down files that are kept and go out with a delivery, which may be part of a message."""
    for file in files:
        work.run(
            sql.TO_SEND,
            {
                **_described(work, file),
                "message": message,
                "delivery": delivery,
                "key": storable(file.key),
                "sha": file.sha256 or None,
            },
        )


def _described(work: Work, file: Attachment) -> dict[str, object]:
    return {
        "kind": file.kind.value,
        "name": storable(file.name),
        "media_type": storable(file.media_type),
        "size": file.size,
        "now": work.now,
    }
