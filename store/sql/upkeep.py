"""Statements of recovery, retention and the small writes. Text only."""

from typing import Final

# --- recovery -----------------------------------------------------------------------

FREE_CONVERSATIONS: Final = """
UPDATE conversation SET lease_owner = NULL, lease_until = NULL WHERE lease_owner IS NOT NULL
"""

OPEN_TURNS: Final = """
UPDATE conversation SET ready_at = coalesce(ready_at, :now)
WHERE id IN (SELECT conversation_id FROM turn WHERE state IN ('running', 'waiting'))
"""

# The clock of the earlier process may have been ahead. A chat that is parked stays so.
READY_NOW: Final = "UPDATE conversation SET ready_at = :now WHERE ready_at > :now"

BUDGETS_NOW: Final = "UPDATE chat SET budget_tat = :now WHERE budget_tat > :now"

DUE_NOW: Final = """
UPDATE delivery SET next_at = :now
WHERE state = 'ready' AND next_at > :now
  AND chat_id NOT IN (SELECT id FROM chat WHERE parked_until > :now)
"""

UNCERTAIN: Final = """
UPDATE delivery SET state = 'uncertain', lease_owner = NULL, lease_until = NULL
WHERE state = 'sending'
"""

ALL_UNCERTAIN: Final = "SELECT id FROM delivery WHERE state = 'uncertain' ORDER BY id"

FREE_TIMERS: Final = """
UPDATE timer SET lease_owner = NULL, lease_until = NULL WHERE lease_owner IS NOT NULL
"""

ORPHANS: Final = """
SELECT q.id FROM question q LEFT JOIN turn t ON t.id = q.turn_id
WHERE q.state = 'pending' AND (q.kind IN ('elicitation', 'url', 'sampling')
  OR t.id IS NULL OR t.state NOT IN ('running', 'waiting'))
ORDER BY q.created_at, q.id
"""

# --- retention -----------------------------------------------------------------------

LAST_EVENT_UNTIL: Final = "SELECT max(id) FROM event WHERE at <= :until"

PRUNE_EVENTS: Final = """
DELETE FROM event WHERE id <= :cursor AND id < (SELECT max(id) FROM event)
"""

PRUNED_TO: Final = """
UPDATE meta SET value = CAST(max(CAST(value AS INTEGER),
    min(:cursor, (SELECT max(id) FROM event) - 1)) AS TEXT)
WHERE key = 'events_pruned_to'
"""

PRUNE_MEDIA: Final = """
SELECT a.id, a.path_key FROM attachment a
WHERE a.state = 'stored' AND a.path_key IS NOT NULL AND a.created_at < :before
  AND NOT EXISTS (SELECT 1 FROM message m JOIN conversation c ON c.id = m.conversation_id
                  WHERE m.id = a.message_id AND c.ready_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.id = a.delivery_id
                    AND d.state IN ('ready', 'sending', 'uncertain'))
ORDER BY a.id
"""

PRUNED_MEDIA: Final = "UPDATE attachment SET state = 'pruned', path_key = NULL WHERE id = :id"

# --- small ones ------------------------------------------------------------------------

HOME: Final = """
INSERT INTO home_channel (platform, account, chat_key, thread_key, set_by, set_at)
VALUES (:platform, :account, :chat, :thread, :actor, :now)
ON CONFLICT (platform, account) DO UPDATE SET chat_key = excluded.chat_key,
  thread_key = excluded.thread_key, set_by = excluded.set_by, set_at = excluded.set_at
WHERE :default = 0 OR home_channel.set_by = excluded.set_by
"""

TITLE: Final = "UPDATE session SET title = :title WHERE id = :session"

MODEL: Final = "UPDATE session SET model = :model WHERE id = :session"

REVOKE: Final = """
UPDATE standing_rule SET revoked_at = :now, revoked_by = :actor
WHERE id = :rule AND revoked_at IS NULL
RETURNING id, scope, session_id, server, tool, tool_def_sha, granted_by, created_at, used_count
"""

USE_RULE: Final = """
UPDATE standing_rule SET used_count = used_count + 1 WHERE id = :rule AND revoked_at IS NULL
"""

RULE_CONVERSATION: Final = "SELECT conversation_id FROM session WHERE id = :session"

SERVER: Final = """
INSERT INTO mcp_server (name, config_sha, server_sha, state, reason, since, attempts,
  next_probe_at, era, elicits, updated_at)
VALUES (:name, :config_sha, :server_sha, :state, :reason, :now, :attempts, :next_probe_at, :era,
  :elicits, :now)
ON CONFLICT (name) DO UPDATE SET config_sha = excluded.config_sha,
  server_sha = excluded.server_sha, state = excluded.state, reason = excluded.reason,
  since = CASE WHEN mcp_server.state = excluded.state THEN mcp_server.since
          ELSE excluded.since END,
  attempts = excluded.attempts, next_probe_at = excluded.next_probe_at,
  era = CASE WHEN excluded.era <> '' THEN excluded.era ELSE mcp_server.era END,
  elicits = max(mcp_server.elicits, excluded.elicits), updated_at = excluded.updated_at
"""

PIN_TOOL: Final = """
INSERT INTO mcp_tool (server, name, alias, def_sha, def, read_only, idempotent, pinned_sha,
  pinned_at, first_seen_at, changed_at)
VALUES (:server, :name, :alias, :def_sha, :def, :read_only, :idempotent, :def_sha, :now, :now, :now)
ON CONFLICT (server, name) DO UPDATE SET alias = excluded.alias, def = excluded.def,
  read_only = excluded.read_only, idempotent = excluded.idempotent,
  pinned_sha = excluded.pinned_sha, pinned_at = excluded.pinned_at,
  changed_at = CASE WHEN mcp_tool.def_sha = excluded.def_sha THEN mcp_tool.changed_at
               ELSE excluded.changed_at END,
  def_sha = excluded.def_sha
"""

AUDIT: Final = """
INSERT INTO audit (at, actor, surface, action, subject, detail)
VALUES (:now, :actor, :surface, :action, :subject, :detail)
"""

TIMER: Final = """
INSERT INTO timer (name, kind, due_at, every_ms, payload)
VALUES (:name, :kind, :due_at, :every_ms, :payload)
ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, due_at = excluded.due_at,
  every_ms = excluded.every_ms, payload = excluded.payload, lease_owner = NULL, lease_until = NULL
"""

CLAIM_TIMER: Final = """
UPDATE timer SET lease_owner = :me, lease_until = :until
WHERE name = (SELECT name FROM timer WHERE due_at <= :now AND coalesce(lease_until, 0) < :now
              ORDER BY due_at, name LIMIT 1)
RETURNING name, kind, payload, every_ms, due_at
"""

TIMER_AGAIN: Final = """
UPDATE timer SET lease_owner = NULL, lease_until = NULL,
  due_at = due_at + every_ms * (max(:now - due_at, 0) / every_ms + 1)
WHERE name = :name AND every_ms > 0
"""

TIMER_DONE: Final = "DELETE FROM timer WHERE name = :name AND coalesce(every_ms, 0) <= 0"
