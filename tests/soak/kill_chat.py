"""Kills a real `hermes chat` at random instants of the main flow, and checks what is left.

Each round types a request, answers the card of the untrusted MCP server with *Allow once*, and
sends SIGKILL after a random time; the next process goes on, and may be killed as well. Printed:
the seed and how often each stage was hit. Run as `python -m tests.soak.kill_chat --kills N`.
"""

import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypedDict

from adapters.terminal.outbound import REPEAT_NOTE
from tests.soak.command import announced, dice_of, parser, tell
from tests.soak.ledger import STAGES, broken, settled, stage_of
from tests.support.chat import Chat
from tests.support.scripted import model_process, write_home

CARD: Final = r"1\) Allow once.*?4\) Deny\n"
SECOND_KILL: Final = 0.3
"""How often the process that recovers is killed too."""
DRAIN_SECONDS: Final = 60.0
WARM_UP: Final = 5
MEASURED: Final = 6
"""Every so many requests one is left alone, to see how long they take now."""
AGAIN_NOTE: Final = re.escape(REPEAT_NOTE)
LATE: Final = 1.1
"""Kills fall anywhere up to this many times the length of an undisturbed request."""
START_SECONDS: Final = 2.5
"""A process that recovers is killed anywhere in its start and the first moments of its work."""


@dataclass(slots=True)
class Soak:
    """One run: a home, its fakes, and what was seen."""

    home: Path
    runs: Path
    dice: random.Random
    chat: Chat
    kills: int = 0
    answered: set[int] = field(default_factory=set[int])
    stages: Counter[str] = field(default_factory=Counter[str])
    shown: str = ""
    span: float = 1.0
    answer_at: float | None = None

    def restart(self) -> None:
        """Start the next process on the same home."""
        self.shown += self.chat.seen
        self.chat.__exit__()
        self.chat = Chat(self.home)
        self.answer_at = None

    def kill(self, text: str) -> None:
        self.chat.kill()
        self.kills += 1
        self.stages[stage_of(self.home, text)] += 1
        self.restart()

    def step(self, seconds: float) -> None:
        """Read for a while, and answer the cards that appear: a person takes a moment."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end and self.chat.running:
            if self.answer_at is not None and now >= self.answer_at:
                self.answer_at = None
                self.chat.say("1")
                continue
            until = end if self.answer_at is None else min(end, self.answer_at)
            if self.chat.find(CARD, seconds=until - now):
                self.answer_at = time.monotonic() + self.dice.uniform(0, self.span)

    def ask(self, text: str, *, kill_after: float | None) -> None:
        """Type a request, and kill after a while or let it end."""
        self.chat.say(text)
        if kill_after is not None:
            self.step(kill_after)
            self.kill(text)

    def drain(self, text: str) -> None:
        """Let the request come to its end, typing it again if it was never accepted."""
        end = time.monotonic() + DRAIN_SECONDS
        if stage_of(self.home, text) == "not accepted":
            self.chat.say(text)
        while not settled(self.home, text):
            if time.monotonic() > end or not self.chat.running:
                stage = stage_of(self.home, text)
                raise AssertionError(
                    f"{text!r} never ended: {stage!r}\n{self.chat.seen}\n{self.chat.errors}"
                )
            self.step(0.02)

    def round(self, number: int) -> str:
        text = f"add note-{number:04d}"
        if number % MEASURED == 0:
            # The machine may be busier or quieter by now.
            self.span = (self.span + self.undisturbed(text)) / 2
            return text
        self.ask(text, kill_after=self.dice.uniform(0, LATE * self.span))
        while self.dice.random() < SECOND_KILL:
            self.step(self.dice.uniform(0, START_SECONDS))
            self.kill(text)
        self.drain(text)
        return text

    def warm_up(self) -> list[str]:
        """Measure an undisturbed request, so that kills fall inside one."""
        texts = [f"add warm-{number}" for number in range(WARM_UP)]
        self.span = statistics.median([self.undisturbed(text) for text in texts])
        return texts

    def undisturbed(self, text: str) -> float:
        """Let a request run from end to end; return its seconds, a person's thinking included."""
        began = time.monotonic()
        self.ask(text, kill_after=None)
        self.chat.expect(CARD)
        time.sleep(self.dice.uniform(0, self.span) if self.kills else 0)
        self.chat.say("1")
        self.chat.expect(text.replace("add", "done"))
        took = time.monotonic() - began
        self.drain(text)
        return took

    def problems(self, texts: list[str]) -> list[str]:
        """Name everything that is not as promised."""
        found = broken(self.home, texts)
        ran = Counter(self.runs.read_text().split("\n") if self.runs.exists() else [])
        shown = self.shown + self.chat.seen
        for text in texts:
            note = text.removeprefix("add ")
            runs = ran[note]
            if runs > 1:
                found.append(f"the write tool ran {runs} times for {note}")
            told = re.findall(rf"({AGAIN_NOTE}\n)?(done|interrupted) {note}\b", shown)
            if not told:
                found.append(f"the reply to {text!r} was never shown")
            elif any(not marked for marked, _ in told[1:]):
                found.append(f"the reply to {text!r} was shown twice without a mark")
            elif told[0][1] == "done" and runs != 1:
                found.append(f"{note} was said to be done and ran {runs} times")
        return found


class Report(TypedDict):
    """What `--json` writes."""

    seed: int
    kills: int
    requests: int
    marked_repeats: int
    stages: dict[str, int]
    problems: list[str]
    seconds: float


def run(kills: int, seed: int) -> Report:
    """Run rounds until that many kills happened; return what was counted."""
    with tempfile.TemporaryDirectory(prefix="hermes-kill-") as name:
        home, runs = Path(name) / "home", Path(name) / "runs"
        home.mkdir(mode=0o700)
        with model_process() as url:
            write_home(home, model_url=url, runs=runs)
            soak = Soak(home=home, runs=runs, dice=dice_of(seed), chat=Chat(home))
            began = time.monotonic()
            texts = soak.warm_up()
            while soak.kills < kills:
                texts.append(soak.round(len(texts)))
            code = soak.chat.end()
            problems = soak.problems(texts)
            soak.chat.__exit__()
    if code:
        problems.append(f"the last process exited {code}")
    return {
        "seed": seed,
        "kills": soak.kills,
        "requests": len(texts),
        "marked_repeats": soak.shown.count(REPEAT_NOTE),
        "stages": {stage: soak.stages[stage] for stage in STAGES},
        "problems": problems,
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> int:
    options = parser(__doc__, kills=20).parse_args()
    report = run(options.kills, announced(options.seed))
    return tell(report, histogram="stages", path=options.json)


if __name__ == "__main__":
    sys.exit(main())
