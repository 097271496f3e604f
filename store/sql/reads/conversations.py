"""Conversations, their sessions and messages."""

from typing import Final

from store.sql.columns import CONVERSATION_OF_KEY, place
from store.sql.lines import lines

CONVERSATIONS: Final = lines(
    "SELECT v.id, v.session_key, v.current_session_id, v.display_name, v.user_name,",
    "  v.created_at, v.last_at, t.title AS chat_name,",
    f"  {place('v')},",
    "  s.message_count, s.input_tokens, s.output_tokens,",
    "  m.id AS message_id, m.session_id AS message_session_id, m.role, m.author, m.author_name,",
    "  m.body, m.created_at AS message_at",
    "FROM conversation v LEFT JOIN chat t ON t.id = v.chat_id",
    "  LEFT JOIN session s ON s.id = v.current_session_id",
    "  LEFT JOIN message m ON m.id = v.last_message_id AND m.deleted_at IS NULL",
    "WHERE v.current_session_id IS NOT NULL",
)
AND_PLATFORM: Final = "\n  AND v.platform = :platform"
AND_SEARCH: Final = "\n  AND instr(v.search_text, :search) > 0"
AND_BEFORE: Final = "\n  AND (v.last_at, v.id) < (:at, :id)"
NEWEST: Final = "\nORDER BY v.last_at DESC, v.id DESC LIMIT :limit"
AND_KEY: Final = f"\n  AND v.id = {CONVERSATION_OF_KEY}"

_SESSION: Final = lines(
    "SELECT id, n, title, model, message_count, input_tokens, output_tokens, started_at, ended_at",
    "FROM session",
)
SESSIONS: Final = lines(
    _SESSION, "WHERE conversation_id = :conversation ORDER BY n DESC LIMIT :limit"
)
SESSION: Final = lines(_SESSION, "WHERE id = :session")
SESSION_NUMBERED: Final = lines(_SESSION, "WHERE conversation_id = :conversation AND n = :n")
SESSION_OF: Final = lines(
    _SESSION,
    "WHERE id = (SELECT session_id FROM message",
    "  WHERE id = :message AND conversation_id = :conversation)",
)
# The books of a session are summed up in its row, by the transaction that writes each of them.
SPENT: Final = lines(
    "SELECT count(*) AS sessions, coalesce(sum(input_tokens), 0) AS input_tokens,",
    "  coalesce(sum(output_tokens), 0) AS output_tokens",
    "FROM session WHERE conversation_id = :conversation",
)

_MESSAGE: Final = "SELECT id, session_id, role, author, author_name, body, created_at FROM message"
_READABLE: Final = (
    "WHERE session_id = :session AND role IN ('user','assistant','note') AND deleted_at IS NULL"
)
MESSAGE: Final = lines(
    _MESSAGE,
    "WHERE id = :message AND conversation_id = :conversation",
    "  AND role IN ('user','assistant','note') AND deleted_at IS NULL",
)
MESSAGES_BEFORE: Final = lines(
    _MESSAGE, _READABLE, "  AND id < :before ORDER BY id DESC LIMIT :limit"
)
MESSAGES_AFTER: Final = lines(
    _MESSAGE, _READABLE, "  AND id > :after AND id < :before ORDER BY id LIMIT :limit"
)
# One statement, since every turn asks it: the latest summary, and the newest of what is readable.
_TOLD: Final = lines(
    "  SELECT id, session_id, role, author, author_name, body, created_at,",
    "    EXISTS (SELECT 1 FROM attachment a WHERE a.message_id = message.id) AS attached",
    "  FROM message",
)
HISTORY: Final = lines(
    "SELECT * FROM (",
    _TOLD,
    "  WHERE session_id = :session AND role = 'summary' AND hidden_at IS NULL",
    "    AND deleted_at IS NULL ORDER BY id DESC LIMIT 1)",
    "UNION ALL SELECT * FROM (",
    _TOLD,
    _READABLE,
    "  AND hidden_at IS NULL AND id >= (SELECT context_from FROM session WHERE id = :session)",
    "  ORDER BY id DESC LIMIT :limit)",
)
