"""All tables, declared once for both engines: what the program knows today.

Migrations create them (`store.migrations`); a test holds the two against each other. The statements
of the store are texts (`store.sql`) and do not go through these.
"""

from typing import Final

from sqlalchemy import CheckConstraint, MetaData, PrimaryKeyConstraint, Table, UniqueConstraint

from store.table_parts import add_index, id_column, integer_column, text_column

metadata: Final = MetaData()

meta = Table(
    "meta",
    metadata,
    text_column("key", key=True),
    text_column("value"),
    sqlite_strict=True,
)

chat = Table(
    "chat",
    metadata,
    id_column(),
    text_column("platform"),
    text_column("account", default="''"),
    text_column("chat_key"),
    text_column("kind", one_of="dm group channel"),
    text_column("title", default="''"),
    integer_column("parked_until", null=True),
    integer_column("budget_tat", default="0"),
    integer_column("migrated_to", references="chat.id", null=True),
    integer_column("created_at"),
    UniqueConstraint("platform", "account", "chat_key"),
    sqlite_strict=True,
)

conversation = Table(
    "conversation",
    metadata,
    id_column(),
    integer_column("chat_id", references="chat.id"),
    text_column("platform"),
    text_column("account", default="''"),
    text_column("chat_type", one_of="dm group channel thread topic"),
    text_column("chat_key"),
    text_column("thread_key", default="''"),
    text_column("participant", default="''"),
    text_column("session_key", unique=True),
    text_column("display_name", default="''"),
    text_column("user_name", default="''"),
    text_column("search_text", default="''"),
    integer_column("current_session_id", null=True),
    integer_column("last_seq", default="0"),
    integer_column("last_ord", default="0"),
    integer_column("last_message_id", null=True),
    integer_column("created_at"),
    integer_column("last_at"),
    integer_column("ready_at", null=True),
    text_column("lease_owner", null=True),
    integer_column("lease_until", null=True),
    integer_column("fence", default="0"),
    UniqueConstraint("platform", "account", "chat_type", "chat_key", "thread_key", "participant"),
    sqlite_strict=True,
)
add_index(conversation, "conversation_recent", "last_at DESC", "id DESC")
add_index(conversation, "conversation_platform", "platform", "last_at DESC", "id DESC")
add_index(conversation, "conversation_chat", "chat_id")
add_index(conversation, "conversation_leased", "lease_owner", where="lease_owner IS NOT NULL")
add_index(conversation, "conversation_ready", "ready_at", where="ready_at IS NOT NULL")

conversation_alias = Table(
    "conversation_alias",
    metadata,
    text_column("session_key", key=True),
    integer_column("conversation_id", references="conversation.id"),
    sqlite_strict=True,
)

session = Table(
    "session",
    metadata,
    id_column(),
    integer_column("conversation_id", references="conversation.id"),
    integer_column("n"),
    text_column("title", default="''"),
    text_column("model", default="''"),
    integer_column("context_from", default="0"),
    integer_column("message_count", default="0"),
    integer_column("input_tokens", default="0"),
    integer_column("output_tokens", default="0"),
    integer_column("started_at"),
    integer_column("ended_at", null=True),
    UniqueConstraint("conversation_id", "n"),
    sqlite_strict=True,
)

directory = Table(
    "directory",
    metadata,
    id_column(),
    text_column("platform"),
    text_column("account", default="''"),
    text_column("chat_key"),
    text_column("thread_key", default="''"),
    text_column("chat_type"),
    text_column("name"),
    text_column("name_folded"),
    text_column("parent_name", default="''"),
    text_column("source", one_of="seen listed config"),
    integer_column("seen_at"),
    integer_column("gone_at", null=True),
    UniqueConstraint("platform", "account", "chat_key", "thread_key"),
    sqlite_strict=True,
)
add_index(directory, "directory_name", "platform", "name_folded", where="gone_at IS NULL")

home_channel = Table(
    "home_channel",
    metadata,
    text_column("platform"),
    text_column("account", default="''"),
    text_column("chat_key"),
    text_column("thread_key", default="''"),
    text_column("set_by"),
    integer_column("set_at"),
    PrimaryKeyConstraint("platform", "account"),
    sqlite_strict=True,
)

pairing = Table(
    "pairing",
    metadata,
    id_column(),
    text_column("platform"),
    text_column("account", default="''"),
    text_column("user_id"),
    text_column("user_name", default="''"),
    text_column("code_hash", null=True),
    text_column("code_salt", null=True),
    integer_column("attempts", default="0"),
    text_column("state", one_of="pending approved revoked expired"),
    integer_column("created_at"),
    integer_column("expires_at", null=True),
    text_column("decided_by", null=True),
    integer_column("decided_at", null=True),
    sqlite_strict=True,
)
add_index(
    pairing,
    "pairing_one",
    "platform",
    "account",
    "user_id",
    unique=True,
    where="state IN ('pending','approved')",
)

inbound = Table(
    "inbound",
    metadata,
    id_column(),
    text_column("dedupe", unique=True),
    integer_column("conversation_id", references="conversation.id"),
    text_column("kind", one_of="message edit delete command press form reaction"),
    text_column("lane", one_of="turn control"),
    text_column("actor"),
    text_column("payload"),
    integer_column("message_id", null=True),
    integer_column("turn_id", null=True),
    text_column("state", default="'new'", one_of="new taken done dropped"),
    integer_column("attempts", default="0"),
    integer_column("sent_at"),
    integer_column("received_at"),
    sqlite_strict=True,
)
add_index(inbound, "inbound_new", "conversation_id", "lane", "id", where="state = 'new'")
add_index(inbound, "inbound_control", "id", where="lane = 'control' AND state = 'new'")
add_index(inbound, "inbound_turn", "turn_id", where="turn_id IS NOT NULL")

message = Table(
    "message",
    metadata,
    id_column(),
    integer_column("conversation_id", references="conversation.id"),
    integer_column("session_id", references="session.id"),
    integer_column("seq"),
    text_column("role", one_of="user assistant note summary"),
    text_column("author"),
    text_column("author_name", default="''"),
    text_column("body"),
    text_column("native_id", null=True),
    text_column("reply_to", null=True),
    integer_column("turn_id", null=True),
    integer_column("hidden_at", null=True),
    integer_column("edited_at", null=True),
    integer_column("deleted_at", null=True),
    integer_column("created_at"),
    UniqueConstraint("conversation_id", "seq"),
    sqlite_strict=True,
)
add_index(message, "message_session", "session_id", "id")
add_index(
    message,
    "message_native",
    "conversation_id",
    "native_id",
    unique=True,
    where="native_id IS NOT NULL",
)

attachment = Table(
    "attachment",
    metadata,
    id_column(),
    integer_column("message_id", references="message.id", null=True),
    integer_column("delivery_id", null=True),
    text_column("kind", one_of="image audio video voice file"),
    text_column("name", default="''"),
    text_column("media_type", default="'application/octet-stream'"),
    integer_column("size", null=True),
    text_column("sha256", null=True),
    text_column("path_key", null=True),
    text_column("native_ref", null=True),
    text_column("state", one_of="pending stored refused failed pruned"),
    text_column("error", null=True),
    integer_column("created_at"),
    sqlite_strict=True,
)
add_index(attachment, "attachment_message", "message_id", where="message_id IS NOT NULL")
add_index(attachment, "attachment_delivery", "delivery_id", where="delivery_id IS NOT NULL")

turn = Table(
    "turn",
    metadata,
    id_column(),
    integer_column("conversation_id", references="conversation.id"),
    integer_column("session_id", references="session.id"),
    text_column("requester"),
    text_column("state", one_of="running waiting done failed cancelled"),
    integer_column("fence"),
    integer_column("attempts", default="1"),
    integer_column("rounds", default="0"),
    text_column("error", null=True),
    integer_column("started_at"),
    integer_column("ended_at", null=True),
    sqlite_strict=True,
)
add_index(turn, "turn_open", "conversation_id", unique=True, where="state IN ('running','waiting')")
add_index(turn, "turn_history", "conversation_id", "id")

step = Table(
    "step",
    metadata,
    integer_column("turn_id", references="turn.id"),
    integer_column("n"),
    text_column("kind", one_of="model tool input"),
    text_column("call_id", default="''"),
    text_column("server", default="''"),
    text_column("tool", default="''"),
    text_column("tool_def_sha", default="''"),
    text_column("args", null=True),
    text_column("args_sha", default="''"),
    integer_column("repeatable", default="0"),
    text_column("question_id", null=True),
    text_column("idem_key", unique=True),
    text_column("state", one_of="planned sent ok error unknown"),
    text_column("result", null=True),
    text_column("error", null=True),
    integer_column("planned_at"),
    integer_column("sent_at", null=True),
    integer_column("done_at", null=True),
    PrimaryKeyConstraint("turn_id", "n"),
    sqlite_strict=True,
)
add_index(step, "step_open", "turn_id", where="state IN ('planned','sent')")

question = Table(
    "question",
    metadata,
    text_column("id", key=True),
    text_column("short"),
    text_column("kind", one_of="tool_call elicitation url sampling arguments choice"),
    integer_column("conversation_id", references="conversation.id"),
    integer_column("shown_in", references="conversation.id"),
    integer_column("session_id", references="session.id"),
    integer_column("turn_id", null=True),
    integer_column("step_n", null=True),
    text_column("requester"),
    text_column("approvers"),
    integer_column("quorum", default="1"),
    text_column("actions"),
    text_column("server", default="''"),
    text_column("server_sha", default="''"),
    text_column("tool", default="''"),
    text_column("tool_def_sha", default="''"),
    text_column("args", null=True),
    text_column("args_sha"),
    text_column("form", null=True),
    text_column("body"),
    text_column("state", one_of="pending allowed denied accepted declined cancelled expired"),
    text_column("content", null=True),
    text_column("decision", null=True),
    text_column("decided_by", null=True),
    text_column(
        "decided_via",
        one_of="button modal command reply cli dashboard bridge channel timeout system",
        null=True,
    ),
    text_column("reason", null=True),
    integer_column("decided_at", null=True),
    integer_column("consumed_at", null=True),
    integer_column("card_delivery_id", null=True),
    integer_column("created_at"),
    integer_column("expires_at"),
    sqlite_strict=True,
)
add_index(question, "question_short", "short", unique=True, where="state = 'pending'")
add_index(question, "question_pending", "expires_at", where="state = 'pending'")
add_index(question, "question_open", "created_at", where="state = 'pending'")
add_index(question, "question_conversation", "conversation_id", "created_at")
add_index(question, "question_shown", "shown_in", where="state = 'pending'")
add_index(question, "question_created", "created_at DESC", "id")
add_index(question, "question_turn", "turn_id", where="turn_id IS NOT NULL")

vote = Table(
    "vote",
    metadata,
    id_column(),
    text_column("question_id", references="question.id"),
    text_column("actor"),
    text_column("surface"),
    text_column("action"),
    text_column("outcome", one_of="counted not_allowed late expired changed not_offered repeated"),
    text_column("reason", default="''"),
    integer_column("at"),
    sqlite_strict=True,
)
add_index(vote, "vote_question", "question_id", "id")
add_index(vote, "vote_once", "question_id", "actor", unique=True, where="outcome = 'counted'")

form_progress = Table(
    "form_progress",
    metadata,
    text_column("question_id", references="question.id", key=True),
    text_column("answers", default="'{}'"),
    text_column("skipped", default="'[]'"),
    text_column("field", default="''"),
    text_column("prompt_ids", default="'[]'"),
    integer_column("rev", default="0"),
    integer_column("updated_at"),
    sqlite_strict=True,
)

button = Table(
    "button",
    metadata,
    text_column("token", key=True),
    text_column("question_id", references="question.id"),
    text_column("action"),
    text_column("argument", default="''"),
    integer_column("created_at"),
    integer_column("used_at", null=True),
    text_column("used_by", null=True),
    sqlite_strict=True,
)
add_index(button, "button_question", "question_id")

standing_rule = Table(
    "standing_rule",
    metadata,
    id_column(),
    text_column("scope", one_of="session always"),
    integer_column("session_id", references="session.id", null=True),
    text_column("server"),
    text_column("server_sha"),
    text_column("tool"),
    text_column("tool_def_sha"),
    text_column("predicate", null=True),
    text_column("granted_by"),
    text_column("question_id", references="question.id", null=True),
    integer_column("created_at"),
    integer_column("used_count", default="0"),
    integer_column("revoked_at", null=True),
    text_column("revoked_by", null=True),
    sqlite_strict=True,
)
add_index(standing_rule, "standing_rule_live", "server", "tool", where="revoked_at IS NULL")

delivery = Table(
    "delivery",
    metadata,
    id_column(),
    integer_column("conversation_id", references="conversation.id"),
    integer_column("chat_id", references="chat.id"),
    integer_column("ord"),
    text_column("kind", one_of="text card file edit"),
    text_column("origin", one_of="turn question command send bridge job notice"),
    integer_column("turn_id", null=True),
    integer_column("message_id", null=True),
    text_column("question_id", null=True),
    integer_column("edits_id", references="delivery.id", null=True),
    text_column("group_key"),
    integer_column("part", default="0"),
    text_column("idem_key", unique=True),
    text_column("body"),
    text_column("payload", default="'{}'"),
    text_column("marks", default="''"),
    text_column("state", default="'ready'", one_of="ready sending sent uncertain dead"),
    text_column("native_id", null=True),
    integer_column("attempts", default="0"),
    integer_column("next_at"),
    text_column("lease_owner", null=True),
    integer_column("lease_until", null=True),
    text_column("last_error", null=True),
    integer_column("created_at"),
    integer_column("sending_at", null=True),
    integer_column("sent_at", null=True),
    UniqueConstraint("conversation_id", "ord"),
    CheckConstraint("state <> 'sent' OR native_id IS NOT NULL"),
    CheckConstraint("(kind = 'edit') = (edits_id IS NOT NULL)"),
    sqlite_strict=True,
)
add_index(delivery, "delivery_ready", "next_at", "id", where="state = 'ready'")
add_index(
    delivery,
    "delivery_open",
    "conversation_id",
    "ord",
    where="state IN ('ready','sending','uncertain')",
)
add_index(delivery, "delivery_sending", "lease_until", where="state = 'sending'")
add_index(delivery, "delivery_uncertain", "id", where="state = 'uncertain'")
add_index(delivery, "delivery_group", "group_key", "part")
add_index(delivery, "delivery_native", "chat_id", "native_id", where="native_id IS NOT NULL")
add_index(
    delivery, "delivery_edit", "edits_id", unique=True, where="kind = 'edit' AND state = 'ready'"
)

event = Table(
    "event",
    metadata,
    id_column(),
    text_column("kind", one_of="start message approval_requested approval_resolved"),
    integer_column("conversation_id", null=True),
    integer_column("message_id", null=True),
    text_column("question_id", null=True),
    integer_column("at"),
    sqlite_autoincrement=True,
    sqlite_strict=True,
)
add_index(event, "event_conversation", "conversation_id", "id", where="conversation_id IS NOT NULL")

mcp_server = Table(
    "mcp_server",
    metadata,
    text_column("name", key=True),
    text_column("config_sha"),
    text_column("server_sha"),
    text_column("state", one_of="disabled lazy connecting ready recycling parked closed"),
    text_column("reason", default="''"),
    integer_column("since"),
    integer_column("attempts", default="0"),
    integer_column("next_probe_at", null=True),
    text_column("era", default="''"),
    text_column("server_info", default="'{}'"),
    integer_column("elicits", default="0"),
    text_column("counters", default="'{}'"),
    integer_column("updated_at"),
    sqlite_strict=True,
)

mcp_tool = Table(
    "mcp_tool",
    metadata,
    text_column("server"),
    text_column("name"),
    text_column("alias"),
    text_column("def_sha"),
    text_column("def"),
    integer_column("read_only", default="0"),
    integer_column("idempotent", default="0"),
    text_column("pinned_sha", null=True),
    integer_column("pinned_at", null=True),
    integer_column("quarantined_at", null=True),
    integer_column("first_seen_at"),
    integer_column("changed_at"),
    integer_column("gone_at", null=True),
    PrimaryKeyConstraint("server", "name"),
    sqlite_strict=True,
)

platform_cursor = Table(
    "platform_cursor",
    metadata,
    text_column("platform"),
    text_column("account", default="''"),
    text_column("name"),
    text_column("value"),
    integer_column("updated_at"),
    PrimaryKeyConstraint("platform", "account", "name"),
    sqlite_strict=True,
)

timer = Table(
    "timer",
    metadata,
    text_column("name", key=True),
    text_column("kind"),
    integer_column("due_at"),
    integer_column("every_ms", null=True),
    text_column("payload", default="'{}'"),
    text_column("lease_owner", null=True),
    integer_column("lease_until", null=True),
    sqlite_strict=True,
)
add_index(timer, "timer_due", "due_at")

lease = Table(
    "lease",
    metadata,
    text_column("name", key=True),
    text_column("owner"),
    integer_column("until"),
    integer_column("fence"),
    sqlite_strict=True,
)

usage = Table(
    "usage",
    metadata,
    id_column(),
    integer_column("conversation_id", null=True),
    integer_column("session_id", null=True),
    integer_column("turn_id", null=True),
    text_column("actor"),
    text_column("purpose", one_of="turn summary sampling"),
    text_column("server", default="''"),
    text_column("model"),
    integer_column("input_tokens"),
    integer_column("output_tokens"),
    integer_column("ms"),
    integer_column("at"),
    sqlite_strict=True,
)
add_index(usage, "usage_actor", "actor", "at")
add_index(usage, "usage_time", "at")

audit = Table(
    "audit",
    metadata,
    id_column(),
    integer_column("at"),
    text_column("actor"),
    text_column("surface"),
    text_column("action"),
    text_column("subject"),
    text_column("detail", default="'{}'"),
    sqlite_strict=True,
)
add_index(audit, "audit_time", "at")
