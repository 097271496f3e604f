"""Counts what one server does. Keeps numbers only, never what was said."""

import asyncio
import dataclasses
import math
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from gateway.domain.form import FormAction
from gateway.domain.tools import Answers

RECENT: Final = 1_000
"""Calls whose times are remembered."""


class CallTimes:
    """How many calls there were, how many gave no good result, and how long the latest took."""

    def __init__(self) -> None:
        self.calls = 0
        self.errors = 0
        self._recent: deque[int] = deque(maxlen=RECENT)

    def add(self, *, ok: bool, ms: int) -> None:
        """Count one call that went out."""
        self.calls += 1
        if not ok:
            self.errors += 1
        self._recent.append(ms)

    def percentile(self, percent: int) -> int | None:
        """Return the time that so many of the latest calls did not exceed; None without calls."""
        if not self._recent:
            return None
        ordered = sorted(self._recent)
        return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


@dataclasses.dataclass(slots=True)
class Told:
    """What a server was told in the end; None until then."""

    action: object = None


class AnswerCount:
    """How often a server asked a person, and what it was told."""

    def __init__(self) -> None:
        self._counts = Answers()

    @contextmanager
    def one(self) -> Generator[Told]:
        """Count one question, by what is noted inside the block or how it is left."""
        told = Told()
        try:
            yield told
        except asyncio.CancelledError:
            told.action = FormAction.CANCEL
            raise
        finally:
            self._add(told.action)

    def so_far(self) -> Answers:
        """Return the counts as they are now."""
        return self._counts

    def _add(self, action: object) -> None:
        counts = self._counts
        added = {"requests": counts.requests + 1}
        match action:
            case FormAction.ACCEPT:
                added["accepted"] = counts.accepted + 1
            case FormAction.DECLINE:
                added["declined"] = counts.declined + 1
            case FormAction.CANCEL:
                added["cancelled"] = counts.cancelled + 1
            case _:
                added["errors"] = counts.errors + 1
        self._counts = dataclasses.replace(counts, **added)
