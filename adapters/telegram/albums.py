"""Which albums are meant for us: Telegram tells each file of one as a message, and one has the words."""

from collections import OrderedDict
from dataclasses import replace
from typing import Final

from gateway.domain.message import InboundEvent, InboundMessage

MAX_ALBUMS: Final = 200
"""Remembered; the files of one come together."""


class Albums:
    """The albums of one account in which somebody named us."""

    def __init__(self) -> None:
        self._ours: OrderedDict[str, None] = OrderedDict()

    def meant(self, event: InboundEvent | None) -> InboundEvent | None:
        """Return a file of an album that names us as one that does, too."""
        if not isinstance(event, InboundMessage) or not event.album:
            return event
        if event.mentions_us:
            self._ours[event.album] = None
            while len(self._ours) > MAX_ALBUMS:
                self._ours.popitem(last=False)
        return replace(event, mentions_us=True) if event.album in self._ours else event
