"""The outbox."""

from typing import Final

from store.sql.columns import CONVERSATION_OF_KEY, DELIVERY, SHOWN_CARD
from store.sql.lines import lines

GROUP: Final = lines(
    "SELECT id, state, native_id, last_error FROM delivery",
    "WHERE group_key = :group_key ORDER BY part LIMIT :limit",
)
UNSURE: Final = DELIVERY + lines(
    "",
    "WHERE d.state = 'uncertain' AND c.platform = :platform AND c.account = :account",
    "ORDER BY d.id LIMIT :limit",
)
CARDS: Final = DELIVERY + lines(
    "",
    "WHERE d.id IN (SELECT",
    SHOWN_CARD,
    "FROM question q WHERE q.state = 'pending' AND q.shown_in =",
    CONVERSATION_OF_KEY + ")",
    "ORDER BY d.id LIMIT :limit",
)
# Only what nothing in its conversation holds up, in the words of the claim.
NEXT_DELIVERY: Final = lines(
    "SELECT min(max(d.next_at, coalesce(c.parked_until, 0), c.budget_tat)) AS at",
    "FROM delivery d CROSS JOIN chat c ON c.id = d.chat_id",
    "WHERE d.state = 'ready' AND c.platform = :platform AND c.account = :account",
    "  AND (d.kind <> 'edit'",
    "    OR (EXISTS (SELECT 1 FROM delivery t WHERE t.id = d.edits_id AND t.state = 'sent')",
    "      AND NOT EXISTS (SELECT 1 FROM delivery e WHERE e.conversation_id = d.conversation_id",
    "        AND e.edits_id = d.edits_id AND e.state IN ('ready','sending','uncertain')",
    "        AND e.id < d.id)))",
    "  AND ((d.kind = 'edit' AND d.body <> '')",
    "    OR NOT EXISTS (SELECT 1 FROM delivery p WHERE p.conversation_id = d.conversation_id",
    "      AND p.ord < d.ord AND p.kind <> 'edit'",
    "      AND p.state IN ('ready','sending','uncertain')))",
)
