"""Questions, buttons and the state of forms."""

from typing import Final

from store.sql.columns import CONVERSATION_OF_KEY, QUESTION
from store.sql.lines import lines

QUESTION_BY_ID: Final = QUESTION + "\nWHERE q.id = :id"
QUESTION_BY_SHORT: Final = QUESTION + "\nWHERE q.short = :short AND q.state = 'pending'"
# Ids are a-z and 2-7; the brace sorts right behind them.
QUESTIONS_BY_PREFIX: Final = QUESTION + (
    "\nWHERE q.id >= :prefix AND q.id < :prefix || '{' ORDER BY q.id LIMIT :limit"
)
QUESTION_OF_STEP: Final = QUESTION + lines(
    "",
    "WHERE q.turn_id = :turn AND q.step_n = :step",
    "ORDER BY q.created_at DESC, q.rowid DESC LIMIT 1",
)
QUESTIONS_PENDING: Final = QUESTION + "\nWHERE q.state = 'pending'"
AND_TURN: Final = "\n  AND q.turn_id = :turn"
AND_SHOWN_IN: Final = f"\n  AND q.shown_in = {CONVERSATION_OF_KEY}"
AND_DUE: Final = "\n  AND q.expires_at <= :due"
OLDEST: Final = "\nORDER BY q.created_at, q.rowid LIMIT :limit"
QUESTIONS_OPEN: Final = QUESTIONS_PENDING + lines(
    "",
    "  AND q.expires_at > :now AND q.kind NOT IN ('arguments','choice')",
    "ORDER BY q.created_at, q.rowid LIMIT :limit",
)
QUESTIONS_NEWEST: Final = QUESTION + "\nORDER BY q.created_at DESC, q.id LIMIT :limit"
QUESTIONS_OLDER: Final = QUESTION + lines(
    "",
    "WHERE q.created_at <= :at AND (q.created_at < :at OR q.id > :id)",
    "ORDER BY q.created_at DESC, q.id LIMIT :limit",
)
QUESTION_CREATED: Final = "SELECT created_at FROM question WHERE id = :id"
BUTTON: Final = "SELECT token, question_id, action, argument FROM button WHERE token = :token"
BUTTONS: Final = (
    "SELECT token, action, argument FROM button WHERE question_id = :question ORDER BY rowid"
)
FORM_STATE: Final = (
    "SELECT rev, field, answers, skipped FROM form_progress WHERE question_id = :question"
)
_THESE: Final = "IN (SELECT value FROM json_each(:questions))"
ATTEMPTS: Final = lines(
    "SELECT id, question_id, actor, surface, action, outcome, reason, at FROM vote",
    f"WHERE question_id {_THESE} ORDER BY question_id, id",
)
RESULTS: Final = lines(
    "SELECT q.id, s.state FROM question q JOIN step s ON s.turn_id = q.turn_id AND s.n = q.step_n",
    f"WHERE q.id {_THESE} AND q.consumed_at IS NOT NULL",
)
NEXT_EXPIRY: Final = "SELECT min(expires_at) AS at FROM question WHERE state = 'pending'"
