"""The column lists that `store.codec` reads, for writer and readers alike. Text only."""

from typing import Final

from store.sql.lines import lines


def place(alias: str, *, prefix: str = "") -> str:
    """Return the columns of a conversation's place, as `codec.place_from_row` reads them."""
    names = ("platform", "account", "chat_type", "chat_key", "thread_key", "participant")
    return ", ".join(f"{alias}.{name} AS {prefix}{name}" for name in names)


QUESTION: Final = lines(
    "SELECT q.id, q.short, q.kind, q.conversation_id, q.session_id, q.turn_id, q.step_n,",
    "  q.requester, q.approvers, q.quorum, q.actions, q.server, q.server_sha, q.tool,",
    "  q.tool_def_sha, q.args, q.args_sha, q.form, q.body, q.state, q.content, q.decision,",
    "  q.decided_by, q.decided_via, q.reason, q.decided_at, q.consumed_at,",
    "  q.card_delivery_id, q.created_at, q.expires_at,",
    place("c", prefix="c_") + ",",
    place("s", prefix="s_"),
    "FROM question q JOIN conversation c ON c.id = q.conversation_id",
    "  JOIN conversation s ON s.id = q.shown_in",
)
"""For `codec.question_from_row`; a WHERE follows."""

FILE: Final = "id, kind, name, media_type, size, native_ref, state, path_key, sha256, error"
"""Of a row of `attachment`, in the order of `codec.file_from_json`."""

DELIVERY: Final = lines(
    "SELECT d.id, d.conversation_id, d.chat_id, d.kind, d.body, d.payload, d.idem_key,",
    "  d.attempts, d.marks, d.origin, d.message_id, t.native_id AS edits_native_id,",
    "  CASE WHEN d.kind = 'file' THEN",
    f"    (SELECT json_group_array(json_array({FILE}))",
    "      FROM attachment",
    "      WHERE delivery_id = d.id) END AS files,",
    place("c"),
    "FROM delivery d JOIN conversation c ON c.id = d.conversation_id",
    "  LEFT JOIN delivery t ON t.id = d.edits_id",
)
"""For `codec.delivery_from_row`; a WHERE follows."""

# A session key leads to its conversation, also one from before its chat migrated.
CONVERSATION_OF_KEY: Final = lines(
    "coalesce((SELECT id FROM conversation WHERE session_key = :session_key),",
    "  (SELECT conversation_id FROM conversation_alias WHERE session_key = :session_key))",
)

# The newest card of question q that reached its chat.
SHOWN_CARD: Final = lines(
    "(SELECT d.id FROM delivery d WHERE d.conversation_id = q.shown_in",
    "  AND d.question_id = q.id AND d.kind = 'card' AND d.state = 'sent'",
    "  ORDER BY d.ord DESC LIMIT 1)",
)
