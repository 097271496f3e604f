"""Schema version 1 in SQLite's words, as it was created then; never changed afterwards.

What the program knows today is `store.tables`; why choices are no IN lists, `store.table_parts`.
"""

import base64
import secrets
from collections.abc import Iterator
from typing import Final

SCHEMA: Final = """
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE chat (
  id INTEGER PRIMARY KEY,
  platform TEXT NOT NULL,
  account TEXT NOT NULL DEFAULT '',
  chat_key TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind = 'dm' OR kind = 'group' OR kind = 'channel'),
  title TEXT NOT NULL DEFAULT '',
  parked_until INTEGER,
  budget_tat INTEGER NOT NULL DEFAULT 0,
  migrated_to INTEGER REFERENCES chat(id),
  created_at INTEGER NOT NULL,
  UNIQUE (platform, account, chat_key)
) STRICT;

CREATE TABLE conversation (
  id INTEGER PRIMARY KEY,
  chat_id INTEGER NOT NULL REFERENCES chat(id),
  platform TEXT NOT NULL,
  account TEXT NOT NULL DEFAULT '',
  chat_type TEXT NOT NULL
    CHECK (chat_type = 'dm' OR chat_type = 'group' OR chat_type = 'channel' OR
      chat_type = 'thread' OR chat_type = 'topic'),
  chat_key TEXT NOT NULL,
  thread_key TEXT NOT NULL DEFAULT '',
  participant TEXT NOT NULL DEFAULT '',
  session_key TEXT NOT NULL UNIQUE,
  display_name TEXT NOT NULL DEFAULT '',
  user_name TEXT NOT NULL DEFAULT '',
  search_text TEXT NOT NULL DEFAULT '',
  current_session_id INTEGER,
  last_seq INTEGER NOT NULL DEFAULT 0,
  last_ord INTEGER NOT NULL DEFAULT 0,
  last_message_id INTEGER,
  created_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  ready_at INTEGER,
  lease_owner TEXT,
  lease_until INTEGER,
  fence INTEGER NOT NULL DEFAULT 0,
  UNIQUE (platform, account, chat_type, chat_key, thread_key, participant)
) STRICT;
CREATE INDEX conversation_recent ON conversation (last_at DESC, id DESC);
CREATE INDEX conversation_platform ON conversation (platform, last_at DESC, id DESC);
CREATE INDEX conversation_chat ON conversation (chat_id);
CREATE INDEX conversation_leased ON conversation (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX conversation_ready ON conversation (ready_at) WHERE ready_at IS NOT NULL;

CREATE TABLE conversation_alias (
  session_key TEXT PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversation(id)
) STRICT;

CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversation(id),
  n INTEGER NOT NULL,
  title TEXT NOT NULL DEFAULT '',
  model TEXT NOT NULL DEFAULT '',
  context_from INTEGER NOT NULL DEFAULT 0,
  message_count INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  UNIQUE (conversation_id, n)
) STRICT;

CREATE TABLE directory (
  id INTEGER PRIMARY KEY,
  platform TEXT NOT NULL,
  account TEXT NOT NULL DEFAULT '',
  chat_key TEXT NOT NULL,
  thread_key TEXT NOT NULL DEFAULT '',
  chat_type TEXT NOT NULL,
  name TEXT NOT NULL,
  name_folded TEXT NOT NULL,
  parent_name TEXT NOT NULL DEFAULT '',
  source TEXT NOT NULL CHECK (source = 'seen' OR source = 'listed' OR source = 'config'),
  seen_at INTEGER NOT NULL,
  gone_at INTEGER,
  UNIQUE (platform, account, chat_key, thread_key)
) STRICT;
CREATE INDEX directory_name ON directory (platform, name_folded) WHERE gone_at IS NULL;

CREATE TABLE home_channel (
  platform TEXT NOT NULL,
  account TEXT NOT NULL DEFAULT '',
  chat_key TEXT NOT NULL,
  thread_key TEXT NOT NULL DEFAULT '',
  set_by TEXT NOT NULL,
  set_at INTEGER NOT NULL,
  PRIMARY KEY (platform, account)
) STRICT;

CREATE TABLE pairing (
  id INTEGER PRIMARY KEY,
  platform TEXT NOT NULL,
  account TEXT NOT NULL DEFAULT '',
  user_id TEXT NOT NULL,
  user_name TEXT NOT NULL DEFAULT '',
  code_hash TEXT,
  code_salt TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL
    CHECK (state = 'pending' OR state = 'approved' OR state = 'revoked' OR state = 'expired'),
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  decided_by TEXT,
  decided_at INTEGER
) STRICT;
CREATE UNIQUE INDEX pairing_one ON pairing (platform, account, user_id)
  WHERE state IN ('pending','approved');

CREATE TABLE inbound (
  id INTEGER PRIMARY KEY,
  dedupe TEXT NOT NULL UNIQUE,
  conversation_id INTEGER NOT NULL REFERENCES conversation(id),
  kind TEXT NOT NULL
    CHECK (kind = 'message' OR kind = 'edit' OR kind = 'delete' OR kind = 'command' OR
      kind = 'press' OR kind = 'form' OR kind = 'reaction'),
  lane TEXT NOT NULL CHECK (lane = 'turn' OR lane = 'control'),
  actor TEXT NOT NULL,
  payload TEXT NOT NULL,
  message_id INTEGER,
  turn_id INTEGER,
  state TEXT NOT NULL DEFAULT 'new'
    CHECK (state = 'new' OR state = 'taken' OR state = 'done' OR state = 'dropped'),
  attempts INTEGER NOT NULL DEFAULT 0,
  sent_at INTEGER NOT NULL,
  received_at INTEGER NOT NULL
) STRICT;
CREATE INDEX inbound_new ON inbound (conversation_id, lane, id) WHERE state = 'new';
CREATE INDEX inbound_control ON inbound (id) WHERE lane = 'control' AND state = 'new';
CREATE INDEX inbound_turn ON inbound (turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE message (
  id INTEGER PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversation(id),
  session_id INTEGER NOT NULL REFERENCES session(id),
  seq INTEGER NOT NULL,
  role TEXT NOT NULL
    CHECK (role = 'user' OR role = 'assistant' OR role = 'note' OR role = 'summary'),
  author TEXT NOT NULL,
  author_name TEXT NOT NULL DEFAULT '',
  body TEXT NOT NULL,
  native_id TEXT,
  reply_to TEXT,
  turn_id INTEGER,
  hidden_at INTEGER,
  edited_at INTEGER,
  deleted_at INTEGER,
  created_at INTEGER NOT NULL,
  UNIQUE (conversation_id, seq)
) STRICT;
CREATE INDEX message_session ON message (session_id, id);
CREATE UNIQUE INDEX message_native ON message (conversation_id, native_id)
  WHERE native_id IS NOT NULL;

CREATE TABLE attachment (
  id INTEGER PRIMARY KEY,
  message_id INTEGER REFERENCES message(id),
  delivery_id INTEGER,
  kind TEXT NOT NULL
    CHECK (kind = 'image' OR kind = 'audio' OR kind = 'video' OR kind = 'voice' OR
      kind = 'file'),
  name TEXT NOT NULL DEFAULT '',
  media_type TEXT NOT NULL DEFAULT 'application/octet-stream',
  size INTEGER,
  sha256 TEXT,
  path_key TEXT,
  native_ref TEXT,
  state TEXT NOT NULL
    CHECK (state = 'pending' OR state = 'stored' OR state = 'refused' OR state = 'failed' OR
      state = 'pruned'),
  error TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX attachment_message ON attachment (message_id)  WHERE message_id IS NOT NULL;
CREATE INDEX attachment_delivery ON attachment (delivery_id) WHERE delivery_id IS NOT NULL;

CREATE TABLE turn (
  id INTEGER PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversation(id),
  session_id INTEGER NOT NULL REFERENCES session(id),
  requester TEXT NOT NULL,
  state TEXT NOT NULL
    CHECK (state = 'running' OR state = 'waiting' OR state = 'done' OR state = 'failed' OR
      state = 'cancelled'),
  fence INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 1,
  rounds INTEGER NOT NULL DEFAULT 0,
  error TEXT,
  started_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT;
CREATE UNIQUE INDEX turn_open ON turn (conversation_id) WHERE state IN ('running','waiting');
CREATE INDEX turn_history ON turn (conversation_id, id);

CREATE TABLE step (
  turn_id INTEGER NOT NULL REFERENCES turn(id),
  n INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind = 'model' OR kind = 'tool' OR kind = 'input'),
  call_id TEXT NOT NULL DEFAULT '',
  server TEXT NOT NULL DEFAULT '',
  tool TEXT NOT NULL DEFAULT '',
  tool_def_sha TEXT NOT NULL DEFAULT '',
  args TEXT,
  args_sha TEXT NOT NULL DEFAULT '',
  repeatable INTEGER NOT NULL DEFAULT 0,
  question_id TEXT,
  idem_key TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL
    CHECK (state = 'planned' OR state = 'sent' OR state = 'ok' OR state = 'error' OR
      state = 'unknown'),
  result TEXT,
  error TEXT,
  planned_at INTEGER NOT NULL,
  sent_at INTEGER,
  done_at INTEGER,
  PRIMARY KEY (turn_id, n)
) STRICT;
CREATE INDEX step_open ON step (turn_id) WHERE state IN ('planned','sent');

CREATE TABLE question (
  id TEXT PRIMARY KEY,
  short TEXT NOT NULL,
  kind TEXT NOT NULL
    CHECK (kind = 'tool_call' OR kind = 'elicitation' OR kind = 'url' OR kind = 'sampling' OR
      kind = 'arguments' OR kind = 'choice'),
  conversation_id INTEGER NOT NULL REFERENCES conversation(id),
  shown_in INTEGER NOT NULL REFERENCES conversation(id),
  session_id INTEGER NOT NULL REFERENCES session(id),
  turn_id INTEGER,
  step_n INTEGER,
  requester TEXT NOT NULL,
  approvers TEXT NOT NULL,
  quorum INTEGER NOT NULL DEFAULT 1,
  actions TEXT NOT NULL,
  server TEXT NOT NULL DEFAULT '',
  server_sha TEXT NOT NULL DEFAULT '',
  tool TEXT NOT NULL DEFAULT '',
  tool_def_sha TEXT NOT NULL DEFAULT '',
  args TEXT,
  args_sha TEXT NOT NULL,
  form TEXT,
  body TEXT NOT NULL,
  state TEXT NOT NULL
    CHECK (state = 'pending' OR state = 'allowed' OR state = 'denied' OR state = 'accepted' OR
      state = 'declined' OR state = 'cancelled' OR state = 'expired'),
  content TEXT,
  decision TEXT,
  decided_by TEXT,
  decided_via TEXT
    CHECK (decided_via = 'button' OR decided_via = 'modal' OR decided_via = 'command' OR
      decided_via = 'reply' OR decided_via = 'cli' OR decided_via = 'dashboard' OR
      decided_via = 'bridge' OR decided_via = 'channel' OR decided_via = 'timeout' OR
      decided_via = 'system'),
  reason TEXT,
  decided_at INTEGER,
  consumed_at INTEGER,
  card_delivery_id INTEGER,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX question_short ON question (short) WHERE state = 'pending';
CREATE INDEX question_pending ON question (expires_at) WHERE state = 'pending';
CREATE INDEX question_open ON question (created_at) WHERE state = 'pending';
CREATE INDEX question_conversation ON question (conversation_id, created_at);
CREATE INDEX question_shown ON question (shown_in) WHERE state = 'pending';
CREATE INDEX question_created ON question (created_at DESC, id);
CREATE INDEX question_turn ON question (turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE vote (
  id INTEGER PRIMARY KEY,
  question_id TEXT NOT NULL REFERENCES question(id),
  actor TEXT NOT NULL,
  surface TEXT NOT NULL,
  action TEXT NOT NULL,
  outcome TEXT NOT NULL
    CHECK (outcome = 'counted' OR outcome = 'not_allowed' OR outcome = 'late' OR
      outcome = 'expired' OR outcome = 'changed' OR outcome = 'not_offered' OR
      outcome = 'repeated'),
  reason TEXT NOT NULL DEFAULT '',
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX vote_question ON vote (question_id, id);
CREATE UNIQUE INDEX vote_once ON vote (question_id, actor) WHERE outcome = 'counted';

CREATE TABLE form_progress (
  question_id TEXT PRIMARY KEY REFERENCES question(id),
  answers TEXT NOT NULL DEFAULT '{}',
  skipped TEXT NOT NULL DEFAULT '[]',
  field TEXT NOT NULL DEFAULT '',
  prompt_ids TEXT NOT NULL DEFAULT '[]',
  rev INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE button (
  token TEXT PRIMARY KEY,
  question_id TEXT NOT NULL REFERENCES question(id),
  action TEXT NOT NULL,
  argument TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL,
  used_at INTEGER,
  used_by TEXT
) STRICT;
CREATE INDEX button_question ON button (question_id);

CREATE TABLE standing_rule (
  id INTEGER PRIMARY KEY,
  scope TEXT NOT NULL CHECK (scope = 'session' OR scope = 'always'),
  session_id INTEGER REFERENCES session(id),
  server TEXT NOT NULL,
  server_sha TEXT NOT NULL,
  tool TEXT NOT NULL,
  tool_def_sha TEXT NOT NULL,
  predicate TEXT,
  granted_by TEXT NOT NULL,
  question_id TEXT REFERENCES question(id),
  created_at INTEGER NOT NULL,
  used_count INTEGER NOT NULL DEFAULT 0,
  revoked_at INTEGER,
  revoked_by TEXT
) STRICT;
CREATE INDEX standing_rule_live ON standing_rule (server, tool) WHERE revoked_at IS NULL;

CREATE TABLE delivery (
  id INTEGER PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversation(id),
  chat_id INTEGER NOT NULL REFERENCES chat(id),
  ord INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind = 'text' OR kind = 'card' OR kind = 'file' OR kind = 'edit'),
  origin TEXT NOT NULL
    CHECK (origin = 'turn' OR origin = 'question' OR origin = 'command' OR origin = 'send' OR
      origin = 'bridge' OR origin = 'job' OR origin = 'notice'),
  turn_id INTEGER,
  message_id INTEGER,
  question_id TEXT,
  edits_id INTEGER REFERENCES delivery(id),
  group_key TEXT NOT NULL,
  part INTEGER NOT NULL DEFAULT 0,
  idem_key TEXT NOT NULL UNIQUE,
  body TEXT NOT NULL,
  payload TEXT NOT NULL DEFAULT '{}',
  marks TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL DEFAULT 'ready'
    CHECK (state = 'ready' OR state = 'sending' OR state = 'sent' OR state = 'uncertain' OR
      state = 'dead'),
  native_id TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER NOT NULL,
  lease_owner TEXT,
  lease_until INTEGER,
  last_error TEXT,
  created_at INTEGER NOT NULL,
  sending_at INTEGER,
  sent_at INTEGER,
  UNIQUE (conversation_id, ord),
  CHECK (state <> 'sent' OR native_id IS NOT NULL),
  CHECK ((kind = 'edit') = (edits_id IS NOT NULL))
) STRICT;
CREATE INDEX delivery_ready ON delivery (next_at, id) WHERE state = 'ready';
CREATE INDEX delivery_open ON delivery (conversation_id, ord)
  WHERE state IN ('ready','sending','uncertain');
CREATE INDEX delivery_sending ON delivery (lease_until) WHERE state = 'sending';
CREATE INDEX delivery_uncertain ON delivery (id) WHERE state = 'uncertain';
CREATE INDEX delivery_group ON delivery (group_key, part);
CREATE INDEX delivery_native ON delivery (chat_id, native_id) WHERE native_id IS NOT NULL;
CREATE UNIQUE INDEX delivery_edit ON delivery (edits_id)
  WHERE kind = 'edit' AND state = 'ready';

CREATE TABLE event (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL
    CHECK (kind = 'start' OR kind = 'message' OR kind = 'approval_requested' OR
      kind = 'approval_resolved'),
  conversation_id INTEGER,
  message_id INTEGER,
  question_id TEXT,
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX event_conversation ON event (conversation_id, id)
  WHERE conversation_id IS NOT NULL;

CREATE TABLE mcp_server (
  name TEXT PRIMARY KEY,
  config_sha TEXT NOT NULL,
  server_sha TEXT NOT NULL,
  state TEXT NOT NULL
    CHECK (state = 'disabled' OR state = 'lazy' OR state = 'connecting' OR state = 'ready' OR
      state = 'recycling' OR state = 'parked' OR state = 'closed'),
  reason TEXT NOT NULL DEFAULT '',
  since INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_probe_at INTEGER,
  era TEXT NOT NULL DEFAULT '',
  server_info TEXT NOT NULL DEFAULT '{}',
  elicits INTEGER NOT NULL DEFAULT 0,
  counters TEXT NOT NULL DEFAULT '{}',
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE mcp_tool (
  server TEXT NOT NULL,
  name TEXT NOT NULL,
  alias TEXT NOT NULL,
  def_sha TEXT NOT NULL,
  def TEXT NOT NULL,
  read_only INTEGER NOT NULL DEFAULT 0,
  idempotent INTEGER NOT NULL DEFAULT 0,
  pinned_sha TEXT,
  pinned_at INTEGER,
  quarantined_at INTEGER,
  first_seen_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  gone_at INTEGER,
  PRIMARY KEY (server, name)
) STRICT;

CREATE TABLE platform_cursor (
  platform TEXT NOT NULL,
  account TEXT NOT NULL DEFAULT '',
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (platform, account, name)
) STRICT;

CREATE TABLE timer (
  name TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  every_ms INTEGER,
  payload TEXT NOT NULL DEFAULT '{}',
  lease_owner TEXT,
  lease_until INTEGER
) STRICT;
CREATE INDEX timer_due ON timer (due_at);

CREATE TABLE lease (
  name TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  until INTEGER NOT NULL,
  fence INTEGER NOT NULL
) STRICT;

CREATE TABLE usage (
  id INTEGER PRIMARY KEY,
  conversation_id INTEGER,
  session_id INTEGER,
  turn_id INTEGER,
  actor TEXT NOT NULL,
  purpose TEXT NOT NULL CHECK (purpose = 'turn' OR purpose = 'summary' OR purpose = 'sampling'),
  server TEXT NOT NULL DEFAULT '',
  model TEXT NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  ms INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX usage_actor ON usage (actor, at);
CREATE INDEX usage_time ON usage (at);

CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  surface TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE INDEX audit_time ON audit (at);
"""
"""Statements, each ended by `;` at the end of its line."""


def statements() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what makes the tables, and the rows an empty store is born with; with their values."""
    for statement in SCHEMA.split(";\n"):
        if statement.strip():
            yield statement, ()
    install = base64.b32encode(secrets.token_bytes(16)).decode("ascii").rstrip("=").lower()
    for key, value in (
        ("application", "hermes-gateway"),
        ("schema_version", "1"),
        ("install_id", install),
        ("epoch", "0"),
        ("events_pruned_to", "0"),
    ):
        yield "INSERT INTO meta (key, value) VALUES (?, ?)", (key, value)
    yield "INSERT INTO event (id, kind, at) VALUES (1, 'start', 0)", ()
