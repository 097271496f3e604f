"""What is read often is read by an index: no scan of a table that grows, no sort of many rows."""

import re
from collections.abc import Mapping

import pytest

from store.sql.reads import (
    books,
    channels,
    conversations,
    deliveries,
    events,
    inbox,
    questions,
    rules,
)
from tests.store.rows import Rows

HOT: Mapping[str, str] = {
    "event bounds": events.EVENT_BOUNDS,
    "event head": events.EVENT_HEAD,
    "event edge": events.EVENT_EDGE,
    "events": events.EVENTS,
    "events of a conversation": events.EVENTS_OF,
    "event behind": events.EVENT_BEHIND,
    "event of a conversation behind": events.EVENT_BEHIND_OF,
    "conversation of a key": events.CONVERSATION_ID,
    "controls": inbox.CONTROLS,
    "waiting": inbox.WAITING,
    "exchange": inbox.EXCHANGE,
    "inputs of an exchange": inbox.EXCHANGE_INPUTS,
    "replies of an exchange": inbox.EXCHANGE_REPLIES,
    "activity": inbox.ACTIVITY,
    "newest conversations": conversations.CONVERSATIONS
    + conversations.AND_BEFORE
    + conversations.NEWEST,
    "newest of a platform": conversations.CONVERSATIONS
    + conversations.AND_BEFORE
    + conversations.AND_PLATFORM
    + conversations.NEWEST,
    "one conversation": conversations.CONVERSATIONS + conversations.AND_KEY,
    "sessions": conversations.SESSIONS,
    "session": conversations.SESSION,
    "session of a number": conversations.SESSION_NUMBERED,
    "spent": conversations.SPENT,
    "messages before": conversations.MESSAGES_BEFORE,
    "messages after": conversations.MESSAGES_AFTER,
    "history": conversations.HISTORY,
    "question": questions.QUESTION_BY_ID,
    "question by short id": questions.QUESTION_BY_SHORT,
    "questions by prefix": questions.QUESTIONS_BY_PREFIX,
    "question of a step": questions.QUESTION_OF_STEP,
    "questions due": questions.QUESTIONS_PENDING + questions.AND_DUE + questions.OLDEST,
    "questions of a turn": questions.QUESTIONS_PENDING + questions.AND_TURN + questions.OLDEST,
    "questions shown": questions.QUESTIONS_PENDING + questions.AND_SHOWN_IN + questions.OLDEST,
    "open questions": questions.QUESTIONS_OPEN,
    "newest questions": questions.QUESTIONS_NEWEST,
    "older questions": questions.QUESTIONS_OLDER,
    "button": questions.BUTTON,
    "buttons": questions.BUTTONS,
    "next expiry": questions.NEXT_EXPIRY,
    "rule": rules.RULE,
    "agreed tool": rules.AGREED,
    "channel by name": channels.CHANNEL_BY_NAME,
    "channel by prefix": channels.CHANNEL_BY_PREFIX,
    "channel by id": channels.CHANNEL_BY_ID,
    "direct chats": channels.DIRECT,
    "group": deliveries.GROUP,
    "unsure": deliveries.UNSURE,
    "cards": deliveries.CARDS,
    "next delivery": deliveries.NEXT_DELIVERY,
    "usage": books.USAGE,
    "usage of an actor": books.USAGE_OF,
    "audit": books.AUDIT,
}

# What is sorted here is few whatever the age of the store: what is pending, or one answer.
MAY_SORT = {"questions due", "questions of a turn", "questions shown", "open questions", "usage",
            "question of a step", "usage of an actor", "channel by prefix", "unsure", "cards"}  # fmt: skip


@pytest.mark.parametrize("name", HOT)
def test_a_frequent_read_is_answered_by_an_index(rows: Rows, name: str) -> None:
    statement = HOT[name]
    values = dict.fromkeys(re.findall(r":(\w+)", statement), 0)

    plan = [
        str(row[3])
        for row in rows.connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
    ]

    scans = [line for line in plan if line.startswith("SCAN") and not _is_bounded_scan(line)]
    assert scans == [], plan
    if name not in MAY_SORT:
        assert not any("TEMP B-TREE" in line for line in plan), plan


def _is_bounded_scan(line: str) -> bool:
    """A walk along an index ends with the LIMIT; the rest are rows without a table.

    How a subquery finds its own rows is a line of its own.
    """
    bounded = ("SCAN CONSTANT", "SCAN json_each", "SCAN (subquery-")
    return " USING " in line or line.startswith(bounded)
