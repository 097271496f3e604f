"""Letting a stranger in by a code: offering it, approving it, and taking it back."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from gateway.domain.delivery import Part
from gateway.domain.ids import Actor, PairingId, Place


class PairingState(StrEnum):
    """`EXPIRED` also stands for codes that were guessed at too often."""

    PENDING = "pending"
    APPROVED = "approved"
    REVOKED = "revoked"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedCode:
    """A code as it is kept: scrypt of it with a salt of its own, both in hexadecimal."""

    hash: str = field(repr=False)
    salt: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Somebody who was given a code; `code` is kept only while it can be used."""

    id: PairingId
    platform: str
    account: str
    user: str
    name: str
    state: PairingState
    created_at: datetime
    expires_at: datetime | None = None
    decided_by: Actor | None = None
    decided_at: datetime | None = None
    code: HashedCode | None = None

    def has_run_out(self, now: datetime) -> bool:
        """Say whether its code still waits by its row, and is not good any more."""
        waits = self.state is PairingState.PENDING
        return waits and self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferPairing:
    """Keep a code for `user`, and send the words that tell it, unless they were told lately.

    Nothing happens when they are paired, were offered a code after `not_since`, or
    `most_pending` others of the account have one that is not used yet.
    """

    place: Place
    user: Actor
    code: HashedCode
    expires_at: datetime
    not_since: datetime
    most_pending: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovePairing:
    """Let the holder of a code in; `parts` tell them where they were told the code."""

    pairing: PairingId
    by: Actor
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokePairing:
    """Let somebody in no more, or make their code worth nothing."""

    pairing: PairingId
    by: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class MissPairing:
    """Note that somebody tried a wrong code; `platform` None is all of them."""

    platform: str | None = None
