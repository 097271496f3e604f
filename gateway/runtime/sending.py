"""Posts a message as the bot, for the shell and the bridge: resolves the target, and waits for the id."""

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.domain.conversation import Ambiguous, Channel
from gateway.domain.delivery import DeliveryStatus, Origin, ids_in
from gateway.domain.errors import StoreBusy
from gateway.domain.files import listed
from gateway.domain.health import Health, HealthState
from gateway.domain.ids import DeliveryId, Place
from gateway.domain.operations.deliveries import Enqueue
from gateway.ports import (
    Channels,
    Clock,
    Deliveries,
    DeliveryStore,
    Media,
    Renderer,
    SendRequest,
    SendResult,
)
from gateway.runtime.cards import one_line
from gateway.runtime.commits import Commits
from gateway.runtime.outgoing import NotTaken, parts_of, take_files
from gateway.runtime.rates import Rate
from gateway.runtime.wakeups import Wakeups

MAX_WAIT_MS: Final = 300_000
MAX_TARGET: Final = 200
BRIDGE_PER_MINUTE: Final = 120
"""Messages of other agents: one that runs wild must not flood people."""

_DOWN: Final = frozenset({HealthState.UNAUTHORIZED, HealthState.OFF})
"""States that do not pass by themselves: nothing is queued for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRefused:
    """It was not sent, by a code of the control API; `delivery` when it is still under way."""

    code: str
    sentence: str
    candidates: tuple[str, ...] = ()
    delivery: DeliveryId | None = None


class Sending:
    """`health` says how an account is, None when this gateway does not run it.

    `bridge_may` says whether other agents may send to a channel; `media` keeps the files that go.
    """

    def __init__(
        self,
        *,
        store: DeliveryStore,
        channels: Channels,
        deliveries: Deliveries,
        renderers: Mapping[str, Renderer],
        health: Callable[[str, str], Health | None],
        bridge_may: Callable[[Channel], bool],
        media: Media,
        wakeups: Wakeups,
        commits: Commits,
        clock: Clock,
    ) -> None:
        self._store = store
        self._channels = channels
        self._deliveries = deliveries
        self._renderers = renderers
        self._health = health
        self._bridge_may = bridge_may
        self._bridge_rate = Rate(BRIDGE_PER_MINUTE, clock)
        self._media = media
        self._wakeups = wakeups
        self._commits = commits

    async def send(self, request: SendRequest) -> SendResult | SendRefused:
        """Put a message into the outbox and return once the platform has it.

        What is refused before it is in the outbox leaves nothing behind.

        Raises:
            StoreBusy: Nothing is queued.
        """
        found = await self._resolve(request.target)
        if isinstance(found, SendRefused):
            return found
        if request.origin is Origin.BRIDGE:
            refused = self._refused_to_bridge(found)
            if refused is not None:
                return refused
        place = found.place
        renderer = self._renderers.get(place.platform)
        refused = self._unreachable(place)
        if refused is not None or renderer is None:
            return refused or _not_run(place.platform)
        key = request.idempotency_key or secrets.token_hex(16)
        group_key = f"{request.origin.value}:{key}"
        queued = await self._queued(place, group_key, request, renderer)
        if isinstance(queued, SendRefused):
            return queued
        self._wakeups.deliveries()
        return await self._confirmed(
            place, group_key, queued, wait_ms=min(request.wait_ms, MAX_WAIT_MS)
        )

    async def _queued(
        self, place: Place, group_key: str, request: SendRequest, renderer: Renderer
    ) -> DeliveryId | SendRefused:
        """Return the first delivery of a message, which is in the outbox now or was before."""
        known = await self._deliveries.group(group_key)
        if known:
            return known[0].id
        files = await take_files(
            request.attachments,
            media=self._media,
            platform=place.platform,
            limits=renderer.capabilities.files,
        )
        if isinstance(files, NotTaken):
            return SendRefused(code=files.code, sentence=files.sentence)
        parts = parts_of(request.text, files, renderer=renderer, where=self._media.path)
        if not parts:
            return SendRefused(code="invalid_arguments", sentence="the message is empty")
        message = Enqueue(
            place=place,
            group_key=group_key,
            parts=parts,
            origin=request.origin,
            note=request.text or f"({listed([file.name for file in files])})",
        )
        copies = [file.key for file in files]
        try:
            queued = await self._store.enqueue(message)
        except StoreBusy:
            await self._media.remove(copies)
            raise
        if queued.known:
            # Another request with the same key was quicker.
            await self._media.remove(copies)
        return queued.ids[0]

    def _refused_to_bridge(self, channel: Channel) -> SendRefused | None:
        if not self._bridge_may(channel):
            sentence = f"mcp_serve.targets does not allow {channel.target}; nothing was sent"
            return SendRefused(code="not_allowed", sentence=sentence)
        over = self._bridge_rate.take(Origin.BRIDGE)
        if over:
            sentence = (
                f"other agents may send {BRIDGE_PER_MINUTE} messages a minute; "
                f"try again in {over:.0f} s"
            )
            return SendRefused(code="rate_limited", sentence=sentence)
        return None

    async def _confirmed(
        self, place: Place, group_key: str, delivery: DeliveryId, *, wait_ms: int
    ) -> SendResult | SendRefused:
        async def look() -> Sequence[DeliveryStatus] | None:
            rows = await self._deliveries.group(group_key)
            return rows if _is_over(rows) else None

        try:
            async with asyncio.timeout(wait_ms / 1000):
                rows = await self._commits.until(look)
        except TimeoutError:
            return SendRefused(
                code="not_confirmed",
                sentence=f"{place.platform} has not confirmed it yet; it stays in the outbox",
                delivery=delivery,
            )
        dead = next((row for row in rows if row.state == "dead"), None)
        if dead is not None:
            why = f"{place.platform} did not take it: {one_line(dead.error, MAX_TARGET)}"
            return SendRefused(code="rejected", sentence=why, delivery=dead.id)
        return SendResult(
            platform=place.platform,
            chat=place.chat,
            thread=place.thread,
            message_ids=tuple(each for row in rows for each in ids_in(row.native_id or "")),
            delivery=delivery,
        )

    async def _resolve(self, target: str) -> Channel | SendRefused:
        found = await self._channels.resolve(target)
        if isinstance(found, Channel):
            return found
        shown = one_line(target, MAX_TARGET)
        if isinstance(found, Ambiguous):
            several = ", ".join(found.candidates)
            return SendRefused(
                code="ambiguous_target",
                sentence=f"{shown} names several channels: {several}",
                candidates=found.candidates,
            )
        platform = target.partition(":")[0].partition("@")[0].strip()
        if platform not in self._renderers:
            return _not_run(platform)
        if ":" not in target:
            sentence = f"{shown} has no home channel: set platforms.{shown}.home_channel"
            return SendRefused(code="no_home_channel", sentence=sentence)
        return SendRefused(
            code="unresolved_target", sentence=f"no channel is known as {shown}; nothing was sent"
        )

    def _unreachable(self, place: Place) -> SendRefused | None:
        health = self._health(place.platform, place.account)
        if health is None:
            return _not_run(place.platform)
        if health.state not in _DOWN:
            return None
        why = f": {one_line(health.reason, MAX_TARGET)}" if health.reason else ""
        return SendRefused(
            code="platform_down", sentence=f"{place.platform} is {health.state.value}{why}"
        )


def _not_run(platform: str) -> SendRefused:
    sentence = f"this gateway has no platform {one_line(platform, MAX_TARGET)}; nothing was sent"
    return SendRefused(code="unknown_platform", sentence=sentence)


def _is_over(rows: Sequence[DeliveryStatus]) -> bool:
    return all(row.state == "sent" for row in rows) or any(row.state == "dead" for row in rows)
