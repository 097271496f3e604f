"""From a commit in another process to the answer of `events_wait`, with a gateway and without one.

1,000 conversations of 100 messages; 1,000 commits, each awaited before the next; then as many in a
burst, which one client follows by its cursor: none may be missed or told twice.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.agent import Agent
from bench.bridge import CONVERSATIONS, bridge_of, seeded
from bench.report import Row, emit, median, percentile, spread
from bench.seed import FIRST_CHAT
from tests.support.chat import ROOT, environment

COMMITS: Final = 1_000
APART_SECONDS: Final = 0.01
"""Between commits: what follows one must be over before the next."""
MAX_P50_MS: Final = 5.0
MAX_P95_MS: Final = 25.0
FUTURE: Final = 1 << 62
WAIT_MS: Final = 60_000
WRITERS: Final = (
    ("without a gateway", "bench.writer"),
    ("with a gateway", "bench.writing_gateway"),
)


class Writer:
    """Commits messages in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._number = 0

    def start(self) -> str:
        """Have one more committed; return its text."""
        assert self._process.stdin is not None
        self._number += 1
        text = f"message {self._number}"
        chat = FIRST_CHAT + self._number % CONVERSATIONS
        line = {"session_key": f"agent:main:telegram:dm:{chat}", "text": text}
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        return text

    def committed(self) -> float:
        """Return when that was done."""
        assert self._process.stdout is not None
        at: float = json.loads(self._process.stdout.readline())["t"]
        return at


@contextmanager
def writing(home: Path, module: str) -> Generator[Writer]:
    with subprocess.Popen(
        [sys.executable, "-m", module, "--home", str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(home),
        cwd=ROOT,
        text=True,
    ) as process:
        yield Writer(process)


def waits(agent: Agent, writer: Writer, *, commits: int = COMMITS) -> Sequence[float]:
    """Return the milliseconds from each commit to its answer."""
    cursor = head(agent)
    took: list[float] = []
    for _ in range(commits):
        agent.start("tools/call", _wait(cursor))
        time.sleep(APART_SECONDS)
        text = writer.start()
        committed = writer.committed()
        at, result = agent.take()
        answer = result["structuredContent"]
        assert answer["event"]["content"] == text, "an event was missed"
        cursor = answer["next_cursor"]
        took.append((at - committed) * 1000)
    return took


def followed(agent: Agent, writer: Writer, *, commits: int = COMMITS) -> int:
    """Return how many events of a burst came, each once and in order."""
    cursor = head(agent)
    texts = [writer.start() for _ in range(commits)]
    seen: list[str] = []
    while len(seen) < commits:
        agent.start("tools/call", _wait(cursor))
        answer = agent.take()[1]["structuredContent"]
        if answer["event"] is None:
            break
        seen.append(answer["event"]["content"])
        cursor = answer["next_cursor"]
    for _ in texts:
        writer.committed()
    assert seen == texts, "an event was missed, told twice or out of order"
    return len(seen)


def head(agent: Agent) -> int:
    """Return where the stream is: a cursor from the future is told that."""
    answer = agent.call("events_poll", {"after_cursor": FUTURE})[1]
    cursor: int = answer["next_cursor"]
    return cursor


def _wait(cursor: int) -> dict[str, object]:
    return {"name": "events_wait", "arguments": {"after_cursor": cursor, "timeout_ms": WAIT_MS}}


def row(name: str, took: Sequence[float], seen: int) -> Row:
    p50, p95 = median(took), percentile(took, 0.95)
    return {
        "name": f"events_wait {name}",
        "unit": "ms",
        "ours": round(p50, 2),
        "floor": None,
        "p50_ms": round(p50, 2),
        "p95_ms": round(p95, 2),
        "spread": spread(took),
        "goal": f"p50 <= {MAX_P50_MS:g}, p95 <= {MAX_P95_MS:g}, none of {COMMITS} missed",
        "met": p50 <= MAX_P50_MS and p95 <= MAX_P95_MS and seen == COMMITS,
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        seeded(home)
        for name, module in WRITERS:
            with writing(home, module) as writer, bridge_of(home) as agent:
                writer.start()
                writer.committed()
                emit(row(name, waits(agent, writer), followed(agent, writer)))


if __name__ == "__main__":
    main()
