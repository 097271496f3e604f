"""The event stream."""

from typing import Final

from store.sql.columns import CONVERSATION_OF_KEY
from store.sql.lines import lines

EVENT_BOUNDS: Final = lines(
    "SELECT (SELECT max(id) FROM event) AS head,",
    "  (SELECT value FROM meta WHERE key = 'events_pruned_to') AS pruned_to",
)
EVENT_HEAD: Final = "SELECT max(id) AS head FROM event"
# A restore starts a new range of ids; the ids at its edge tell whether a cursor was rewound.
EVENT_EDGE: Final = lines(
    "SELECT (SELECT max(id) FROM event WHERE id < :start) AS last_before,",
    "  (SELECT min(id) FROM event WHERE id >= :start) AS first",
)
_EVENTS: Final = lines(
    "SELECT e.id, e.kind, e.at, c.session_key,",
    "  e.message_id, m.role, m.author, m.author_name,",
    "  CASE WHEN m.deleted_at IS NULL THEN m.body ELSE '' END AS body,",
    "  (SELECT count(*) FROM attachment a WHERE a.message_id = e.message_id) AS attachments,",
    "  e.question_id, q.kind AS question_kind, q.server, q.tool, q.requester, q.expires_at,",
    "  q.state, q.decision, q.decided_by, q.decided_via",
    "FROM event e CROSS JOIN conversation c ON c.id = e.conversation_id",
    "  LEFT JOIN message m ON m.id = e.message_id LEFT JOIN question q ON q.id = e.question_id",
)
EVENTS: Final = _EVENTS + ("\nWHERE e.id > :cursor ORDER BY e.id LIMIT :limit")
EVENTS_OF: Final = _EVENTS + lines(
    "",
    "WHERE e.id > :cursor AND e.conversation_id = :conversation ORDER BY e.id LIMIT :limit",
)
# In one statement, since every waiter asks at every commit.
_BEHIND: Final = lines(
    EVENT_BOUNDS + ",",
    "  EXISTS (SELECT 1 FROM event WHERE id > :cursor",
)
EVENT_BEHIND: Final = _BEHIND + " AND conversation_id IS NOT NULL) AS more"
EVENT_BEHIND_OF: Final = lines(
    _BEHIND,
    "    AND conversation_id =",
    CONVERSATION_OF_KEY + ") AS more",
)
CONVERSATION_ID: Final = f"SELECT {CONVERSATION_OF_KEY} AS id"
