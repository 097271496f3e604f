"""Files of messages."""

from typing import Final

from store.sql.columns import CONVERSATION_OF_KEY, FILE, place
from store.sql.lines import lines

OF_MESSAGES: Final = lines(
    "SELECT message_id,",
    FILE,
    "FROM attachment",
    "WHERE message_id IN (SELECT value FROM json_each(:messages)) ORDER BY id",
)

_COLUMNS: Final = ", ".join(f"a.{name}" for name in FILE.split(", "))
PENDING: Final = lines(
    f"SELECT a.message_id, {_COLUMNS}, {place('c')}",
    "FROM attachment a JOIN message m ON m.id = a.message_id",
    "  JOIN conversation c ON c.id = m.conversation_id",
    "WHERE a.id > :after AND a.state = 'pending' AND m.deleted_at IS NULL",
    "ORDER BY a.id LIMIT :limit",
)
ROOM: Final = lines(
    "SELECT coalesce(sum(a.size), 0) AS everything,",
    "  coalesce(sum(CASE WHEN m.conversation_id =",
    CONVERSATION_OF_KEY,
    "    THEN a.size END), 0) AS conversation",
    "FROM attachment a LEFT JOIN message m ON m.id = a.message_id",
    "WHERE a.state = 'stored' AND a.path_key IS NOT NULL",
)
UNKNOWN: Final = lines(
    "SELECT value AS key FROM json_each(:keys)",
    "WHERE value NOT IN (SELECT path_key FROM attachment WHERE path_key IS NOT NULL)",
)
