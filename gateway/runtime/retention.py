"""Lets go of what is older than it has to be kept, and of files that no row knows of any more."""

import logging
from datetime import timedelta
from typing import Final

from gateway.domain.errors import FileUnwritable, StoreBusy
from gateway.domain.operations.upkeep import Prune
from gateway.ports import Clock, Files, Media, UpkeepStore

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 3_600.0
STRAY_DAYS: Final = 7
"""Before a file of the media folder that no row names is deleted: a turn may still be about it."""
MAX_STRAYS: Final = 500


class Retention:
    """One for the process; `days` 0 keeps everything that a row names."""

    def __init__(
        self, *, store: UpkeepStore, files: Files, media: Media, clock: Clock, days: int
    ) -> None:
        self._store = store
        self._files = files
        self._media = media
        self._clock = clock
        self._days = days

    async def look(self) -> None:
        """Prune what is too old, never what open work needs; what fails is tried the next time."""
        try:
            if self._days:
                await self._prune()
            await self._sweep()
        except (StoreBusy, FileUnwritable) as error:
            logger.warning("nothing was pruned: %s", error)

    async def _prune(self) -> None:
        before = self._clock.now() - timedelta(days=self._days)
        pruned = await self._store.prune(Prune(events_until=before, media_before=before))
        # A crash in between leaves files that no row names: they are swept later.
        await self._media.remove(pruned.media_paths)
        if pruned.events or pruned.media_paths:
            logger.info("pruned %d events, %d files", pruned.events, len(pruned.media_paths))

    async def _sweep(self) -> None:
        old = await self._media.left_behind(
            before=self._clock.now() - timedelta(days=max(self._days, STRAY_DAYS))
        )
        strays = await self._files.unknown(old[:MAX_STRAYS])
        await self._media.remove(strays)
        if strays:
            logger.info("deleted %d files that nothing refers to", len(strays))
