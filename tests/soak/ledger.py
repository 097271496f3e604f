"""What a home's database says after a kill, read from outside (`mode=ro`), and the invariants it must keep."""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

STAGES: Final = (
    "not accepted",
    "accepted",
    "turn claimed",
    "call planned",
    "question open",
    "question decided",
    "call sent",
    "call done",
    "reply stored",
    "reply sending",
    "reply sent",
)
"""Where a kill can hit a request, in the order it passes them."""

_STAGE: Final = """
SELECT
  (SELECT count(*) FROM inbound i WHERE i.message_id = m.id AND i.state <> 'new') AS taken,
  (SELECT count(*) FROM step s WHERE s.turn_id = i.turn_id AND s.kind = 'tool' AND s.server <> '') AS planned,
  (SELECT q.state FROM question q WHERE q.turn_id = i.turn_id ORDER BY q.created_at DESC LIMIT 1) AS question,
  (SELECT s.state FROM step s WHERE s.turn_id = i.turn_id AND s.server <> '' ORDER BY s.n DESC LIMIT 1) AS step,
  (SELECT d.state FROM delivery d WHERE d.turn_id = i.turn_id AND d.origin = 'turn' ORDER BY d.id DESC LIMIT 1)
    AS delivery
FROM message m JOIN inbound i ON i.message_id = m.id WHERE m.role = 'user' AND m.body = ?
"""


@contextmanager
def reading(home: Path) -> Generator[sqlite3.Connection]:
    """Open the home's database for reading only."""
    with closing(sqlite3.connect(f"file:{home / 'state.db'}?mode=ro", uri=True)) as database:
        database.execute("PRAGMA busy_timeout = 5000")
        yield database


def stage_of(home: Path, text: str) -> str:
    """Say how far the request with this text had come."""
    if not (home / "state.db").exists():
        return "not accepted"
    with reading(home) as database:
        try:
            row = database.execute(_STAGE, (text,)).fetchone()
        except sqlite3.OperationalError:
            # Killed before the first migration was committed.
            return "not accepted"
    if row is None:
        return "not accepted"
    taken, planned, question, step, delivery = row
    if delivery is not None:
        by_state = {"sent": "reply sent", "sending": "reply sending", "uncertain": "reply sending"}
        return by_state.get(delivery, "reply stored")
    if step in {"ok", "error", "unknown"}:
        return "call done"
    if step == "sent":
        return "call sent"
    if question is not None:
        return "question open" if question == "pending" else "question decided"
    if planned:
        return "call planned"
    return "turn claimed" if taken else "accepted"


def broken(home: Path, texts: list[str]) -> list[str]:
    """Name every invariant that the drained database does not keep, for these requests."""
    with reading(home) as database:
        found = [f"{what}: {count}" for what, count in counts(database) if count]
        for text in texts:
            found += _broken_request(database, text)
    return found


def counts(database: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    """Count what a drained database must not hold."""
    (integrity,) = database.execute("PRAGMA integrity_check").fetchone()
    yield f"integrity_check says {integrity}", int(integrity != "ok")
    yield "foreign keys broken", len(database.execute("PRAGMA foreign_key_check").fetchall())
    for what, query in (
        ("turns left open", "SELECT count(*) FROM turn WHERE state IN ('running', 'waiting')"),
        ("inputs left", "SELECT count(*) FROM inbound WHERE state IN ('new', 'taken')"),
        ("steps left open", "SELECT count(*) FROM step WHERE state IN ('planned', 'sent')"),
        ("questions left pending", "SELECT count(*) FROM question WHERE state = 'pending'"),
        (
            "deliveries left",
            "SELECT count(*) FROM delivery WHERE state IN ('ready', 'sending', 'uncertain')",
        ),
        (
            "answers given up",
            "SELECT count(*) FROM delivery WHERE kind <> 'edit' AND state = 'dead'",
        ),
        (
            "turns with two replies",
            "SELECT count(*) FROM (SELECT turn_id FROM message WHERE role = 'assistant' "
            "AND turn_id IS NOT NULL GROUP BY turn_id HAVING count(*) > 1)",
        ),
        (
            "turns without a reply",
            "SELECT count(*) FROM turn t WHERE t.state = 'done' AND NOT EXISTS "
            "(SELECT 1 FROM message m WHERE m.turn_id = t.id AND m.role = 'assistant')",
        ),
        (
            "approvals used by two steps",
            "SELECT count(*) FROM (SELECT question_id FROM step WHERE question_id IS NOT NULL "
            "GROUP BY question_id HAVING count(*) > 1)",
        ),
    ):
        (count,) = database.execute(query).fetchone()
        yield what, int(count)


def _broken_request(database: sqlite3.Connection, text: str) -> list[str]:
    stored = database.execute(
        "SELECT i.turn_id FROM message m JOIN inbound i ON i.message_id = m.id "
        "WHERE m.role = 'user' AND m.body = ?",
        (text,),
    ).fetchall()
    if len(stored) != 1:
        return [f"{text!r} is stored {len(stored)} times"]
    (replies,) = database.execute(
        "SELECT count(*) FROM message WHERE role = 'assistant' AND turn_id = ?", stored[0]
    ).fetchone()
    return [] if replies == 1 else [f"{text!r} has {replies} replies"]


def settled(home: Path, text: str) -> bool:
    """Whether the request was answered, and its answer shown."""
    return stage_of(home, text) == "reply sent"
