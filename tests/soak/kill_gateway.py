"""Kills a real `hermes gateway run` at random instants while people write to it, and checks what is left.

Ten people write on a Telegram of our own, ask for gated tools and allow them; each process gets
SIGKILL after a random time or kills itself at a named point, the last one works everything off and
must then hold no more than a fresh one. Printed: the seed and what was open
at each kill. Run as `python -m tests.soak.kill_gateway --kills N --messages M`.
"""

import random
import re
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypedDict

from adapters.telegram.ids import SentIds
from gateway.telemetry.faults import FaultPoint
from tests.e2e.on_telegram import UNHURRIED
from tests.fakes.telegram.process import telegram_process
from tests.soak.command import announced, dice_of, parser, tell
from tests.soak.footprint import Footprint, footprint, running_with
from tests.soak.ledger import counts, reading
from tests.soak.town import People, call_of, is_repeat
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.scripted import model_process, write_home

LONGEST_LIFE: Final = 5.0
"""A process is killed anywhere in its start and the first moments of its work."""
PAUSE: Final = 0.15
ARMED_SHARE: Final = 0.25
"""How many of the processes kill themselves at one of the named points, if they get there."""
END_SECONDS: Final = 15.0
"""Until the last server of a process that ended is gone."""
DRAIN_SECONDS: Final = 600.0

OPEN: Final = {
    "inputs waiting": "SELECT count(*) FROM inbound WHERE state = 'new'",
    "turn running": "SELECT count(*) FROM turn WHERE state = 'running'",
    "call planned": "SELECT count(*) FROM step WHERE state = 'planned'",
    "question open": "SELECT count(*) FROM question WHERE state = 'pending'",
    "call sent": "SELECT count(*) FROM step WHERE state = 'sent'",
    "reply ready": "SELECT count(*) FROM delivery WHERE state = 'ready'",
    "reply sending": "SELECT count(*) FROM delivery WHERE state IN ('sending', 'uncertain')",
}
"""What can be open when a process dies."""

_ANSWER: Final = """
SELECT a.body FROM message m JOIN inbound i ON i.message_id = m.id
JOIN message a ON a.turn_id = i.turn_id AND a.role = 'assistant'
WHERE m.role = 'user' AND m.body = ?
"""


class Report(TypedDict):
    """What `--json` writes."""

    seed: int
    kills: int
    kills_at_points: int
    messages: int
    conversations: int
    writes: int
    marked_repeats: int
    open_at_kill: dict[str, int]
    problems: list[str]
    seconds: float


@dataclass(slots=True, kw_only=True)
class Siege:
    """One run: a home, its people, and what was seen."""

    home: Path
    runs: Path
    people: People
    dice: random.Random
    kills: int = 0
    at_points: int = 0
    open_at_kill: Counter[str] = field(default_factory=Counter[str])

    def live(self, messages: int) -> None:
        """Let one process live for a while among people who write, then kill it."""
        end = time.monotonic() + self.dice.uniform(0, LONGEST_LIFE)
        fault = self._fault()
        with Gateway(self.home, ready=False, env=fault) as gateway:
            while (left := end - time.monotonic()) > 0:
                self.people.talk(messages)
                self.people.press()
                time.sleep(min(left, self.dice.uniform(0, PAUSE)))
                if fault and not gateway.running:
                    break
            if not gateway.running and not (fault and gateway.wait() == -signal.SIGKILL):
                raise AssertionError(f"it ended by itself:\n{gateway.stderr}\n{_log(self.home)}")
            if gateway.running:
                gateway.signal(signal.SIGKILL)
            else:
                self.at_points += 1
            gateway.wait()
        self.kills += 1
        found = [what for what, query in OPEN.items() if _count(self.home, query)]
        self.open_at_kill.update(found or ["nothing"])

    def _fault(self) -> dict[str, str]:
        """Let some processes kill themselves at a named point: what is short is hit too."""
        if self.dice.random() >= ARMED_SHARE:
            return {}
        point = self.dice.choice(tuple(FaultPoint))
        return {"HERMES_FAULT": f"{point}:{self.dice.randint(1, 3)}:kill"}

    def drain(self, messages: int) -> list[str]:
        """Let the last process work everything off; return what it was wrong about."""
        with Gateway(self.home) as gateway:
            while self.people.count < messages:
                self.people.talk(messages)

            def quiet() -> bool:
                self.people.press()
                waiting = self.people.service.do("pending")
                return not waiting and not any(_count(self.home, query) for query in OPEN.values())

            try:
                eventually(quiet, seconds=DRAIN_SECONDS, what="an end of everything")
            except AssertionError as error:
                still = {what: _count(self.home, query) for what, query in OPEN.items()}
                return [f"{error}: {still}"]
            held = footprint(gateway.pid)
            code = gateway.end()
        found = [] if code == 0 else [f"the last process exited {code}"]
        return found + [
            f"after the end of everything: {each}" for each in held.beyond(self._fresh())
        ]

    def _fresh(self) -> Footprint:
        """Return what a process holds that has answered a message of everybody and nothing else."""
        with Gateway(self.home) as gateway:
            self.people.greet()
            held = footprint(gateway.pid)
            gateway.end()
        return held

    def left_running(self) -> list[str]:
        """Name the servers that outlived every gateway."""
        try:
            eventually(lambda: not running_with(str(self.runs)), seconds=END_SECONDS)
        except AssertionError:
            return [f"{len(running_with(str(self.runs)))} servers still run"]
        return []

    def problems(self) -> list[str]:
        """Name everything that is not as promised."""
        with reading(self.home) as database:
            found = [f"{what}: {count}" for what, count in counts(database) if count]
            for who, said in self.people.said.items():
                found += _order(database, who, said)
                found += self._visible(database, who)
            found += self._ran(database)
        return found

    def _visible(self, database: sqlite3.Connection, who: int) -> list[str]:
        """Everything shown is in the books, everything in the books is shown, or it says it repeats."""
        rows = database.execute(
            "SELECT d.native_id FROM delivery d JOIN chat c ON c.id = d.chat_id "
            "WHERE c.chat_key = ? AND d.kind <> 'edit' AND d.state = 'sent' ORDER BY d.ord",
            (str(who),),
        ).fetchall()
        booked = [number for (text,) in rows for number in _numbers(text)]
        shown = self.people.shown(who)
        repeats = {item["text"] for item in shown if is_repeat(item)}
        known = set(booked)
        found = [
            f"chat {who}: message {item['id']} was shown twice without a mark: {item['text']!r}"
            for item in shown
            if item["id"] not in known and not any(text.endswith(item["text"]) for text in repeats)
        ]
        missing = known - {item["id"] for item in shown}
        found += [f"chat {who}: {len(missing)} sent messages are not there"] if missing else []
        found += [f"chat {who}: the order of answers changed"] if booked != sorted(booked) else []
        found += [
            f"chat {who}: card {item['id']} is still open" for item in shown if item["labels"]
        ]
        return found

    def _ran(self, database: sqlite3.Connection) -> list[str]:
        """No write ran twice, and what is said of each is what happened."""
        ran = Counter(self.runs.read_text().split() if self.runs.exists() else [])
        found: list[str] = []
        for note in self.people.writes:
            row = database.execute(_ANSWER, (call_of(note),)).fetchone()
            answer = "" if row is None else str(row[0])
            done = re.fullmatch(r"Got: \d+", answer) is not None
            if ran[note] > 1:
                found.append(f"the write tool ran {ran[note]} times for {note}")
            elif done and ran[note] != 1:
                found.append(f"{note} was said to be done and ran {ran[note]} times")
            elif not done and "interrupted" not in answer:
                found.append(f"{note} was allowed, and this was said of it: {answer!r}")
        return found

    @property
    def marked_repeats(self) -> int:
        return sum(is_repeat(item) for who in self.people.chats for item in self.people.shown(who))


def _order(database: sqlite3.Connection, who: int, said: list[str]) -> list[str]:
    stored = database.execute(
        "SELECT m.body FROM message m JOIN conversation v ON v.id = m.conversation_id "
        "JOIN chat c ON c.id = v.chat_id WHERE m.role = 'user' AND c.chat_key = ? ORDER BY m.id",
        (str(who),),
    ).fetchall()
    bodies = [text for (text,) in stored]
    if bodies == said:
        return []
    lost = Counter(said) - Counter(bodies)
    twice = Counter(bodies) - Counter(said)
    return [f"chat {who}: {lost.total()} lost, {twice.total()} doubled, or another order"]


def _numbers(native_id: str) -> tuple[int, ...]:
    ids = SentIds.parse(native_id)
    return () if ids is None else ids.all


def _log(home: Path) -> str:
    """Return the end of the log, which has what people are not told."""
    log = home / "logs" / "gateway.log"
    return log.read_text("utf-8", "replace")[-8_000:] if log.exists() else "without a log"


def _count(home: Path, query: str) -> int:
    if not (home / "state.db").exists():
        return 0
    with reading(home) as database:
        try:
            (count,) = database.execute(query).fetchone()
        except sqlite3.OperationalError:
            # Killed before the first migration was committed.
            return 0
    return int(count)


@contextmanager
def besieged(dice: random.Random, *, conversations: int) -> Generator[Siege]:
    """Set up a home and its people; nothing runs for it before the first `live`."""
    with tempfile.TemporaryDirectory(prefix="hermes-siege-") as name:
        home, runs, record = Path(name) / "home", Path(name) / "runs", Path(name) / "asked"
        home.mkdir(mode=0o700)
        record.touch()
        with (
            model_process("tests.e2e.obedient", "--record", str(record)) as url,
            telegram_process(unlimited=True) as service,
        ):
            people = People.move_in(service, dice, chats=conversations)
            account = {
                "token": service.do("bot")["token"],
                "base_url": service.base_url,
                "allow_from": [str(who) for who in people.chats],
            }
            sections = {
                "platforms": {"telegram": account},
                "approvals": {"timeout": 3600},
                "access": UNHURRIED,
            }
            write_home(home, model_url=url, runs=runs, sections=sections)
            yield Siege(home=home, runs=runs, people=people, dice=dice)


def run(*, kills: int, messages: int, conversations: int, seed: int) -> Report:
    """Kill that many processes over that many messages; return what was counted."""
    with besieged(dice_of(seed), conversations=conversations) as siege:
        began = time.monotonic()
        for done in range(kills):
            siege.live(messages * (done + 1) // kills)
        problems = siege.drain(messages)
        problems += siege.left_running()
        problems += siege.problems()
        return {
            "seed": seed,
            "kills": siege.kills,
            "kills_at_points": siege.at_points,
            "messages": siege.people.count,
            "conversations": conversations,
            "writes": len(siege.people.writes),
            "marked_repeats": siege.marked_repeats,
            "open_at_kill": dict(siege.open_at_kill.most_common()),
            "problems": problems,
            "seconds": round(time.monotonic() - began, 1),
        }


def main() -> int:
    options = parser(__doc__, kills=20)
    options.add_argument("--messages", type=int, default=200)
    options.add_argument("--conversations", type=int, default=10)
    given = options.parse_args()
    report = run(
        kills=given.kills,
        messages=given.messages,
        conversations=given.conversations,
        seed=announced(given.seed),
    )
    return tell(report, histogram="open_at_kill", path=given.json)


if __name__ == "__main__":
    sys.exit(main())
