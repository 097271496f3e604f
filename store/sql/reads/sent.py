"""What was sent, by the ids a platform gave it."""

from typing import Final

from store.sql.columns import place
from store.sql.lines import lines

FIND: Final = lines(
    "SELECT d.id, d.native_id, d.kind, d.payload,",
    place("c"),
    "FROM delivery d CROSS JOIN conversation c ON c.id = d.conversation_id",
    "WHERE d.chat_id = (SELECT id FROM chat WHERE platform = :platform AND account = :account",
    "    AND chat_key = :chat)",
    "  AND d.native_id IN (SELECT value FROM json_each(:ids)) AND d.kind <> 'edit'",
    "ORDER BY d.id DESC LIMIT 1",
)
PARKED: Final = lines(
    "SELECT chat_key, parked_until FROM chat",
    "WHERE platform = :platform AND account = :account AND parked_until IS NOT NULL",
)
ASKED: Final = lines(
    "SELECT c.platform, c.account, d.sending_at",
    "FROM delivery d JOIN conversation c ON c.id = d.conversation_id WHERE d.id = :delivery",
)
# Walking down from the newest row, so far and no further.
KNOWN_SENT: Final = lines(
    "SELECT d.id, c.chat_key, d.native_id, d.sent_at AS at",
    "FROM delivery d CROSS JOIN chat c ON c.id = d.chat_id",
    "WHERE d.id > (SELECT max(id) FROM delivery) - :depth AND d.native_id IS NOT NULL",
    "  AND c.platform = :platform AND c.account = :account",
    "ORDER BY d.id DESC LIMIT :limit",
)
KNOWN_RECEIVED: Final = lines(
    "SELECT m.id, c.chat_key, m.native_id, m.created_at AS at",
    "FROM message m CROSS JOIN conversation c ON c.id = m.conversation_id",
    "WHERE m.id > (SELECT max(id) FROM message) - :depth AND m.native_id IS NOT NULL",
    "  AND c.platform = :platform AND c.account = :account",
    "ORDER BY m.id DESC LIMIT :limit",
)
# Commands and typed answers are messages on their platform, and none here.
KNOWN_GIVEN: Final = lines(
    "SELECT i.id, c.chat_key, json_extract(i.payload, '$.native_id') AS native_id,",
    "  i.received_at AS at",
    "FROM inbound i CROSS JOIN conversation c ON c.id = i.conversation_id",
    "WHERE i.id > (SELECT max(id) FROM inbound) - :depth AND i.kind IN ('command','form')",
    "  AND c.platform = :platform AND c.account = :account",
    "ORDER BY i.id DESC LIMIT :limit",
)
UNSETTLED: Final = lines(
    "SELECT (SELECT count(*) FROM delivery d JOIN chat c ON c.id = d.chat_id",
    "    WHERE d.state = 'sending' AND d.kind <> 'edit'",
    "      AND c.platform = :platform AND c.account = :account)",
    "  + (SELECT count(*) FROM delivery d JOIN chat c ON c.id = d.chat_id",
    "    WHERE d.state = 'uncertain' AND d.kind <> 'edit'",
    "      AND c.platform = :platform AND c.account = :account) AS unsettled",
)
ANSWERED: Final = lines(
    "SELECT i.id, coalesce(m.native_id, json_extract(i.payload, '$.native_id')) AS native_id",
    "FROM inbound i LEFT JOIN message m ON m.id = i.message_id",
    "WHERE i.turn_id = (SELECT turn_id FROM delivery WHERE id = :delivery)",
    "ORDER BY i.id DESC LIMIT 1",
)
