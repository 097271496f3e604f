"""Lets strangers in by a code that somebody in charge approves. Who may do that is judged elsewhere."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from gateway.domain.errors import StoreBusy
from gateway.domain.ids import Actor, Place
from gateway.domain.operations.pairing import (
    ApprovePairing,
    MissPairing,
    OfferPairing,
    Pairing,
    PairingState,
    RevokePairing,
)
from gateway.ports import Clock, Pairings, PairingStore, Renderer
from gateway.runtime.access import Access
from gateway.runtime.pairing_codes import hashed, is_of, new_code, typed
from gateway.runtime.rates import Rate, Told
from gateway.runtime.wakeups import Wakeups

logger = logging.getLogger(__name__)

CODE_LIFE: Final = timedelta(hours=1)
APART: Final = timedelta(minutes=10)
"""Between two codes for one person."""
MOST_PENDING: Final = 50
"""Codes of one account that wait; a crowd of strangers gets no more."""
OFFERS_A_MINUTE: Final = 20
MAX_READ: Final = 10_000

OFFER: Final = (
    "I do not know you yet. Your pairing code is `{code}`; it is good for one hour. "
    "Whoever runs this bot lets you in with `hermes pairing approve {platform} {code}`."
)
WELCOME: Final = "You are paired: write to me here whenever you like."


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPairing:
    """Nobody waits with that code, or nobody by that id is in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Several are meant: `accounts` are the platforms (with the account) to choose from."""

    accounts: tuple[str, ...]


Found: TypeAlias = Pairing | NoPairing | Which


class PairingDesk:
    """One for the process; tells `access` who is in."""

    def __init__(
        self,
        store: PairingStore,
        pairings: Pairings,
        renderers: Mapping[str, Renderer],
        access: Access,
        wakeups: Wakeups,
        clock: Clock,
    ) -> None:
        self._store = store
        self._pairings = pairings
        self._renderers = renderers
        self._access = access
        self._wakeups = wakeups
        self._clock = clock
        self._told = Told(clock, quiet_seconds=APART.total_seconds(), from_last=True)
        self._rate = Rate(OFFERS_A_MINUTE, clock)

    async def load(self) -> None:
        """Learn who was let in before."""
        for pairing in await self._pairings.page(PairingState.APPROVED, limit=MAX_READ):
            self._access.let_in(*_key(pairing))

    async def offer(self, user: Actor, place: Place) -> None:
        """Send a stranger a code, once in a while; the store knows of codes before a restart."""
        account = _name(place.platform, place.account)
        if not self._told.is_news(f"{account}:{user.id}") or self._rate.take(account):
            return
        renderer = self._renderers.get(place.platform)
        if renderer is None:
            return
        code = new_code()
        now = self._clock.now()
        offer = OfferPairing(
            place=place,
            user=user,
            code=await asyncio.to_thread(hashed, code),
            expires_at=now + CODE_LIFE,
            not_since=now - APART,
            most_pending=MOST_PENDING,
            parts=renderer.text(OFFER.format(code=code, platform=place.platform)),
        )
        try:
            offered = await self._store.offer_pairing(offer)
        except StoreBusy as error:
            # A stranger must not keep an account from what its people write.
            logger.warning("no pairing code for %s: %s", user, error)
            return
        if offered:
            logger.info("a pairing code was sent to %s in %s", user, place.session_key)
            self._wakeups.deliveries()

    async def approve(self, code: str, *, platform: str = "", by: Actor) -> Found:
        """Let the holder of a code in; a code that is none counts against those that wait."""
        waiting = await self._page(PairingState.PENDING, platform=platform)
        now = self._clock.now()
        alive = [item for item in waiting if not item.has_run_out(now)]
        found = await asyncio.to_thread(_holders, alive, typed(code))
        if not found:
            await self._store.miss_pairing(MissPairing(platform=platform.partition("@")[0] or None))
            return NoPairing()
        if len(found) > 1:
            return _which(found)
        renderer = self._renderers.get(found[0].platform)
        parts = renderer.text(WELCOME) if renderer else ()
        done = await self._store.approve_pairing(
            ApprovePairing(pairing=found[0].id, by=by, parts=parts)
        )
        if done is None:
            return NoPairing()
        self._access.let_in(*_key(done))
        logger.info("%s:%s was paired by %s", done.platform, done.user, by)
        self._wakeups.deliveries()
        return done

    async def revoke(self, user: str, *, platform: str = "", by: Actor) -> Found:
        """Let somebody in no more; `user` is their id, or `platform:id`."""
        if not platform and ":" in user:
            platform, _, user = user.partition(":")
        everybody = await self._page(PairingState.PENDING, PairingState.APPROVED, platform=platform)
        found = [item for item in everybody if item.user == user]
        if not found:
            return NoPairing()
        if len(found) > 1:
            return _which(found)
        done = await self._store.revoke_pairing(RevokePairing(pairing=found[0].id, by=by))
        if done is None:
            return NoPairing()
        self._access.let_out(*_key(done))
        logger.info("%s:%s is paired no more, by %s", done.platform, done.user, by)
        return done

    async def _page(self, *states: PairingState, platform: str) -> Sequence[Pairing]:
        found = await self._pairings.page(*states, limit=MAX_READ)
        return [
            item
            for item in found
            if platform in {"", item.platform, _name(item.platform, item.account)}
        ]


def _holders(pending: Sequence[Pairing], code: str) -> list[Pairing]:
    return [item for item in pending if item.code is not None and is_of(code, item.code)]


def _which(found: Sequence[Pairing]) -> Which:
    return Which(accounts=tuple(sorted(_name(item.platform, item.account) for item in found)))


def _key(pairing: Pairing) -> tuple[str, str, str]:
    return pairing.platform, pairing.account, pairing.user


def _name(platform: str, account: str) -> str:
    return f"{platform}@{account}" if account else platform
