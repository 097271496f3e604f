"""What was accepted and is not worked off."""

from typing import Final

from store.sql.columns import CONVERSATION_OF_KEY, SHOWN_CARD
from store.sql.lines import lines

_INBOUND: Final = lines(
    "SELECT i.id, i.conversation_id, i.kind, i.payload, i.message_id,",
    "  coalesce(m.session_id, c.current_session_id) AS session_id",
    "FROM inbound i CROSS JOIN conversation c ON c.id = i.conversation_id",
    "  LEFT JOIN message m ON m.id = i.message_id",
)
CONTROLS: Final = _INBOUND + (
    "\nWHERE i.lane = 'control' AND i.state = 'new' ORDER BY i.id LIMIT :limit"
)
INBOUND: Final = _INBOUND + "\nWHERE i.id = :inbound"
WAITING: Final = lines(
    "SELECT count(*) AS waiting FROM inbound",
    f"WHERE conversation_id = {CONVERSATION_OF_KEY} AND lane = 'turn' AND state = 'new'",
)
# An edit of what was never sent is not going to be shown.
ACTIVITY: Final = lines(
    "SELECT CASE",
    "  WHEN EXISTS (SELECT 1 FROM inbound i WHERE i.conversation_id = c.id AND i.lane = 'control'",
    "      AND i.state = 'new')",
    "    OR EXISTS (SELECT 1 FROM delivery d LEFT JOIN delivery t ON t.id = d.edits_id",
    "      WHERE d.conversation_id = c.id AND d.state IN ('ready','sending','uncertain')",
    "        AND coalesce(t.state, '') <> 'dead') THEN 'busy'",
    "  WHEN EXISTS (SELECT 1 FROM question q WHERE q.shown_in = c.id AND q.state = 'pending'",
    f"      AND {SHOWN_CARD} IS NOT NULL) THEN 'asking'",
    "  WHEN EXISTS (SELECT 1 FROM inbound i WHERE i.conversation_id = c.id AND i.lane = 'turn'",
    "      AND i.state = 'new')",
    "    OR EXISTS (SELECT 1 FROM turn t WHERE t.conversation_id = c.id",
    "      AND t.state IN ('running','waiting')) THEN 'busy'",
    "  ELSE 'settled' END AS activity",
    f"FROM conversation c WHERE c.id = {CONVERSATION_OF_KEY}",
)
LAST_TURN: Final = lines(
    "SELECT id, state, ended_at FROM turn",
    f"WHERE conversation_id = {CONVERSATION_OF_KEY} ORDER BY id DESC LIMIT 1",
)
# Walks back along the conversation's turns to the newest that answered something still told.
_TOLD: Final = (
    "i.kind = 'message' AND m.hidden_at IS NULL AND m.deleted_at IS NULL AND m.id >= s.context_from"
)
EXCHANGE: Final = lines(
    "SELECT t.id FROM turn c JOIN session s ON s.id = c.session_id",
    "  JOIN turn t ON t.conversation_id = c.conversation_id AND t.session_id = c.session_id",
    "WHERE c.id = :turn AND t.id < :turn",
    "  AND EXISTS (SELECT 1 FROM inbound i JOIN message m ON m.id = i.message_id",
    f"    WHERE i.turn_id = t.id AND {_TOLD})",
    "ORDER BY t.id DESC LIMIT 1",
)
EXCHANGE_INPUTS: Final = lines(
    "SELECT i.id, i.conversation_id, i.kind, i.payload, i.message_id, m.session_id,",
    "  CASE WHEN m.edited_at IS NULL THEN NULL ELSE m.body END AS edited",
    "FROM inbound i JOIN message m ON m.id = i.message_id JOIN session s ON s.id = m.session_id",
    f"WHERE i.turn_id = :turn AND {_TOLD} ORDER BY i.id",
)
EXCHANGE_REPLIES: Final = lines(
    "SELECT id FROM message WHERE session_id = :session AND id > :after AND role = 'assistant'",
    "  AND hidden_at IS NULL AND deleted_at IS NULL ORDER BY id",
)
THREADS: Final = lines(
    "SELECT session_key FROM conversation c WHERE thread_key <> ''",
    "  AND EXISTS (SELECT 1 FROM turn t WHERE t.conversation_id = c.id)",
    "ORDER BY last_at DESC, id DESC LIMIT :limit",
)
LAST_HEARD: Final = lines(
    "SELECT c.platform, c.account, c.chat_type, c.chat_key, c.thread_key, c.participant,",
    "  (SELECT m.native_id FROM message m WHERE m.conversation_id = c.id AND m.role = 'user'",
    "    AND m.native_id IS NOT NULL ORDER BY m.id DESC LIMIT 1) AS native_id",
    "FROM conversation c WHERE c.platform = :platform AND c.account = :account",
    "ORDER BY c.last_at DESC, c.id DESC LIMIT :limit",
)
