"""Letting strangers in by a code; each change of who is in is a line of the books."""

from typing import Final

from gateway.domain.delivery import Origin
from gateway.domain.ids import Actor, ConversationId
from gateway.domain.operations.pairing import (
    ApprovePairing,
    MissPairing,
    OfferPairing,
    Pairing,
    RevokePairing,
)
from gateway.domain.operations.upkeep import AddAudit
from gateway.domain.question import Surface
from store.codec import ms, pairing_from_row, storable
from store.operations.outbox import Owner, add_parts, next_ords
from store.operations.places import rows_of
from store.operations.upkeep import add_audit
from store.sql import pairing as sql
from store.work import Work

MOST_MISSES: Final = 5
"""Wrong codes after which every code that waits is worth nothing."""


def offer_pairing(work: Work, offer: OfferPairing) -> bool:
    """Keep a code and send it, unless its holder has or had one; say whether that was done."""
    place = offer.place
    values: dict[str, object] = {
        "platform": storable(place.platform),
        "account": storable(place.account),
        "user": storable(offer.user.id),
        "name": storable(offer.user.name),
        "hash": offer.code.hash,
        "salt": offer.code.salt,
        "expires_at": ms(offer.expires_at),
        "not_since": ms(offer.not_since),
        "most_pending": offer.most_pending,
        "now": work.now,
    }
    work.run(sql.RUN_OUT, values)
    if work.one(sql.STANDS, values) is not None:
        return False
    work.run(sql.REPLACE, values)
    pairing = work.insert(sql.OFFER, values)
    rows = rows_of(work, place)
    first, chat = next_ords(work, rows.conversation, parts=len(offer.parts))
    add_parts(
        work,
        Owner(conversation=rows.conversation, chat=chat),
        offer.parts,
        origin=Origin.NOTICE.value,
        group_key=_told(pairing),
        first_ord=first,
    )
    return True


def approve_pairing(work: Work, approve: ApprovePairing) -> Pairing | None:
    """Let the holder of a code in; None when the code is used, taken back or run out."""
    values = {
        "pairing": approve.pairing,
        "actor": storable(str(approve.by)),
        "now": work.now,
    }
    row = work.one(sql.APPROVE, values)
    if row is None:
        return None
    found = pairing_from_row(row)
    _note(work, found, by=approve.by, action="pair")
    told = work.one(sql.TOLD_IN, {"group_key": _told(found.id)})
    if told is not None and approve.parts:
        conversation = ConversationId(told["conversation_id"])
        first, chat = next_ords(work, conversation, parts=len(approve.parts))
        add_parts(
            work,
            Owner(conversation=conversation, chat=chat),
            approve.parts,
            origin=Origin.NOTICE.value,
            group_key=f"paired:{found.id}",
            first_ord=first,
        )
    return found


def revoke_pairing(work: Work, revoke: RevokePairing) -> Pairing | None:
    """Let somebody in no more; None when they were not in and have no code."""
    values = {"pairing": revoke.pairing, "actor": storable(str(revoke.by)), "now": work.now}
    row = work.one(sql.REVOKE, values)
    if row is None:
        return None
    found = pairing_from_row(row)
    _note(work, found, by=revoke.by, action="unpair")
    return found


def miss_pairing(work: Work, miss: MissPairing) -> None:
    """Count a wrong code against every code that waits."""
    work.run(
        sql.MISS,
        {
            "most": MOST_MISSES,
            "everywhere": miss.platform is None,
            "platform": storable(miss.platform or ""),
        },
    )


def _told(pairing: int) -> str:
    return f"pairing:{pairing}"


def _note(work: Work, pairing: Pairing, *, by: Actor, action: str) -> None:
    user = Actor(platform=pairing.platform, id=pairing.user)
    detail = {"account": pairing.account, "name": pairing.name}
    add_audit(
        work,
        AddAudit(actor=by, surface=Surface.CLI, action=action, subject=str(user), detail=detail),
    )
