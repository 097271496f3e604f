"""What the crash harness finds after real kills, and that it finds what it is for.

The full counts are those of `make crash` and `make soak`.
"""

import sqlite3
from collections.abc import Generator
from contextlib import closing
from typing import Final

import pytest

from tests.soak.command import dice_of
from tests.soak.kill_gateway import Siege, besieged
from tests.support.requirement import requirement

SEED: Final = 20260707
KILLS: Final = 3
MESSAGES: Final = 30

OTHER_WORDS: Final = """
UPDATE message SET body = 'another' WHERE id = (SELECT min(id) FROM message WHERE role = 'user')
"""
OTHER_ID: Final = """
UPDATE delivery SET native_id = '999999'
WHERE id = (SELECT max(id) FROM delivery WHERE kind = 'text' AND state = 'sent')
"""
OPENED_AGAIN: Final = """
UPDATE inbound SET state = 'taken' WHERE id = (SELECT min(id) FROM inbound WHERE state = 'done')
"""


@pytest.fixture(scope="module")
def siege() -> Generator[Siege]:
    """A home whose first processes were killed; its last one worked everything off."""
    with besieged(dice_of(SEED), conversations=3) as made:
        for done in range(KILLS):
            made.live(MESSAGES * (done + 1) // KILLS)
        assert made.drain(MESSAGES) == []
        yield made


def changed(siege: Siege, statement: str) -> list[str]:
    """Return what is found once the database is another; it is put back afterwards."""
    path = siege.home / "state.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = path.read_bytes()
        assert database.execute(statement).rowcount == 1
        database.commit()
    found = siege.problems()
    path.write_bytes(before)
    return found


@requirement("store.kill9")
def test_after_kills_everything_is_there_once_and_in_its_order(siege: Siege) -> None:
    assert (siege.kills, siege.people.count >= MESSAGES) == (KILLS, True)
    assert siege.left_running() == []
    assert siege.problems() == []


def test_a_lost_message_is_found(siege: Siege) -> None:
    (problem,) = changed(siege, OTHER_WORDS)

    assert "1 lost, 1 doubled" in problem


def test_a_reply_that_the_books_do_not_know_is_found(siege: Siege) -> None:
    problems = changed(siege, OTHER_ID)

    assert any("was shown twice without a mark" in problem for problem in problems)
    assert any("sent messages are not there" in problem for problem in problems)


def test_an_input_that_is_still_open_is_found(siege: Siege) -> None:
    assert changed(siege, OPENED_AGAIN) == ["inputs left: 1"]


def test_a_write_that_ran_twice_is_found(siege: Siege) -> None:
    notes = siege.runs.read_text()
    siege.runs.write_text(notes + notes.splitlines(keepends=True)[0])
    (problem,) = siege.problems()
    siege.runs.write_text(notes)

    assert "ran 2 times" in problem
