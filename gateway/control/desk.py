"""What the routes act on: everything of the running gateway that the API can reach, and nothing more."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from adapters.terminal.attached import AttachedTerminals
from gateway.domain.ids import Place
from gateway.ports import Clock, EventSink, Readers, ToolHost, UpkeepStore
from gateway.runtime.commits import Commits
from gateway.runtime.decisions import Decisions
from gateway.runtime.form_answers import FormAnswers
from gateway.runtime.pairing import PairingDesk
from gateway.runtime.permissions import Permissions
from gateway.runtime.sending import Sending
from gateway.runtime.status import StatusBoard


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What never changes while a gateway runs."""

    version: str
    home: str
    pid: int
    uid: int
    user: str
    started_at: datetime
    store_url: str
    schema: int


class Given:
    """Counts what people gave to each attached chat, so that an end says of what it is the end."""

    def __init__(self, commits: Commits) -> None:
        self._counts: Counter[str] = Counter()
        self._commits = commits

    def add(self, place: Place) -> int:
        """Count one more; what it stands for is committed."""
        key = place.session_key
        self._counts[key] += 1
        self._commits.ring()
        return self._counts[key]

    def count(self, place: Place) -> int:
        """Return how many there were."""
        return self._counts[place.session_key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """`stop` ends the gateway (at once when true); `ending` is set when streams must let go."""

    about: About
    board: StatusBoard
    readers: Readers
    store: UpkeepStore
    host: ToolHost
    intake: EventSink
    terminals: AttachedTerminals
    sending: Sending
    decisions: Decisions
    answers: FormAnswers
    pairing: PairingDesk
    permissions: Permissions
    commits: Commits
    given: Given
    clock: Clock
    redact: tuple[str, ...]
    bridge_decides: bool
    stop: Callable[[bool], None]
    leaving: Callable[[], bool]
    ending: asyncio.Event = field(default_factory=asyncio.Event)
