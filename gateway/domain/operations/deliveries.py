"""Filling the outbox and emptying it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from gateway.domain.delivery import DeliveryKind, Origin, Part
from gateway.domain.ids import DeliveryId, InboundId, Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueue:
    """Put parts into the outbox of a place, once per `group_key`.

    `note` also stores the text as a message of the conversation (what `send` and the bridge
    post). `edits` makes the one part an edit. `inbound` is done with it.
    """

    place: Place
    group_key: str
    parts: tuple[Part, ...]
    origin: Origin
    note: str = ""
    edits: DeliveryId | None = None
    inbound: InboundId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued:
    """`known`: the same group key was enqueued before, these are its rows."""

    ids: tuple[DeliveryId, ...]
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimDelivery:
    """Take the next one of an account that may be sent.

    `cost_ms` by kind is what a send takes from the chat's budget, `burst_ms` how far the
    budget may run ahead.
    """

    platform: str
    account: str
    worker: str
    lease_until: datetime
    cost_ms: Mapping[DeliveryKind, int]
    burst_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkChat:
    """Leave the chat of a place alone until then: its platform asked for that."""

    place: Place
    until: datetime
