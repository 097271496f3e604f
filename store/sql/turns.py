"""Statements of claiming, journaling and ending turns. Text only."""

from typing import Final

CLAIM: Final = """
UPDATE conversation SET lease_owner = :me, lease_until = :until, fence = fence + 1
WHERE id = (SELECT id FROM conversation
            WHERE ready_at <= :now AND (lease_until IS NULL OR lease_until < :now)
              AND (:held = '[]' OR platform || '@' || account NOT IN
                   (SELECT value FROM json_each(:held)))
            ORDER BY ready_at, id LIMIT 1)
RETURNING id, fence, current_session_id, platform, account, chat_type, chat_key, thread_key,
  participant
"""

RESUME: Final = """
UPDATE turn SET fence = :fence, attempts = attempts + 1, state = 'running'
WHERE conversation_id = :conv AND state IN ('running', 'waiting')
RETURNING id, session_id, requester, rounds, attempts,
  (SELECT s.model FROM session s WHERE s.id = session_id) AS model
"""

UNKNOWN: Final = """
UPDATE step SET state = 'unknown', done_at = :now
WHERE turn_id = :turn AND kind = 'tool' AND state = 'sent' AND repeatable = 0
"""

STEPS: Final = """
SELECT n, kind, call_id, server, tool, tool_def_sha, args, repeatable, state, result, question_id
FROM step WHERE turn_id = :turn ORDER BY n
"""

TAKEN: Final = """
SELECT i.id, i.kind, i.actor, i.payload, i.message_id, m.session_id
FROM inbound i LEFT JOIN message m ON m.id = i.message_id
WHERE i.turn_id = :turn ORDER BY i.id
"""

NEXT: Final = """
SELECT i.id, i.kind, i.actor, i.payload, i.message_id, m.session_id
FROM inbound i LEFT JOIN message m ON m.id = i.message_id
WHERE i.conversation_id = :conv AND i.state = 'new' AND i.lane = 'turn'
ORDER BY i.id LIMIT :limit
"""

CONVERSATION: Final = """
SELECT c.id, c.current_session_id FROM turn t JOIN conversation c ON c.id = t.conversation_id
WHERE t.id = :turn
"""

TURN: Final = """
INSERT INTO turn (conversation_id, session_id, requester, state, fence, started_at)
VALUES (:conv, :session, :actor, 'running', :fence, :now)
RETURNING id, (SELECT s.model FROM session s WHERE s.id = session_id) AS model
"""

TAKE: Final = """
UPDATE inbound SET state = 'taken', turn_id = :turn, attempts = attempts + 1
WHERE id = :inbound AND state = 'new'
"""

RELEASE: Final = """
UPDATE conversation SET lease_owner = NULL, lease_until = NULL,
  ready_at = CASE WHEN
      EXISTS (SELECT 1 FROM inbound
              WHERE conversation_id = :conv AND lane = 'turn' AND state = 'new')
      OR EXISTS (SELECT 1 FROM turn
                 WHERE conversation_id = :conv AND state IN ('running', 'waiting'))
    THEN :now END
WHERE id = :conv AND fence = :fence
"""

# --- journal ----------------------------------------------------------------------

GUARD: Final = """
UPDATE turn SET rounds = :rounds, state = :state
WHERE id = :turn AND fence = :fence AND state IN ('running', 'waiting')
RETURNING id
"""

REPLIED: Final = """
INSERT INTO step (turn_id, n, kind, idem_key, state, result, planned_at, done_at)
VALUES (:turn, :n, 'model', :idem_key, 'ok', :result, :now, :now)
ON CONFLICT (turn_id, n) DO NOTHING
"""

JOINED: Final = """
INSERT INTO step (turn_id, n, kind, idem_key, state, result, planned_at, done_at)
VALUES (:turn, :n, 'input', :idem_key, 'ok', :result, :now, :now)
"""

PLAN: Final = """
INSERT INTO step (turn_id, n, kind, call_id, server, tool, tool_def_sha, args, args_sha,
  repeatable, idem_key, state, planned_at)
VALUES (:turn, :n, 'tool', :call_id, :server, :tool, :def_sha, :args, :args_sha, :repeatable,
  :idem_key, 'planned', :now)
ON CONFLICT (turn_id, n) DO NOTHING
"""

STEP: Final = """
SELECT kind, call_id, args, args_sha, tool_def_sha, repeatable, state, result, error, question_id
FROM step WHERE turn_id = :turn AND n = :n
"""

SENT: Final = """
UPDATE step SET state = 'sent', sent_at = :now
WHERE turn_id = :turn AND n = :n AND kind = 'tool'
  AND (state = 'planned' OR (:again AND state = 'sent' AND repeatable = 1))
RETURNING args, args_sha, tool_def_sha
"""

CONSUME: Final = """
UPDATE question SET consumed_at = coalesce(consumed_at, :now)
WHERE id = :question AND state = 'allowed' AND turn_id = :turn AND step_n = :n
  AND (consumed_at IS NULL OR :again)
  AND args_sha = :args_sha AND tool_def_sha = :def_sha
RETURNING args
"""

DONE: Final = """
UPDATE step SET state = :state, result = :result, error = :error, done_at = :now
WHERE turn_id = :turn AND n = :n AND kind = 'tool'
  AND (state IN ('planned', 'sent') OR (state = 'unknown' AND result IS NULL))
"""

# --- the end ------------------------------------------------------------------------

OPEN_TURN: Final = """
SELECT t.session_id, t.requester, t.state, t.fence, c.fence AS conversation_fence
FROM turn t JOIN conversation c ON c.id = t.conversation_id
WHERE t.id = :turn AND t.conversation_id = :conv
"""

COMMIT: Final = """
UPDATE conversation SET last_seq = last_seq + :messages, last_ord = last_ord + :parts,
  last_at = CASE WHEN :messages THEN :now ELSE last_at END,
  lease_owner = NULL, lease_until = NULL,
  ready_at = CASE WHEN EXISTS (SELECT 1 FROM inbound
                               WHERE conversation_id = :conv AND lane = 'turn' AND state = 'new')
    THEN :ready END
WHERE id = :conv AND fence = :fence
RETURNING last_seq, last_ord, chat_id, ready_at
"""

END: Final = """
UPDATE turn SET state = :state, error = :error, ended_at = :now
WHERE id = :turn AND fence = :fence AND state IN ('running', 'waiting')
"""

CLOSE_STEPS: Final = """
UPDATE step SET state = CASE state WHEN 'planned' THEN 'error' ELSE 'unknown' END, done_at = :now
WHERE turn_id = :turn AND state IN ('planned', 'sent')
"""

INPUTS_DONE: Final = "UPDATE inbound SET state = 'done' WHERE turn_id = :turn AND state = 'taken'"

MESSAGE: Final = """
INSERT INTO message (id, conversation_id, session_id, seq, role, author, body, turn_id,
  created_at)
VALUES (:message, :conv, :session, :seq, :role, 'agent', :body, :turn, :now)
"""

HIDE: Final = """
UPDATE message SET hidden_at = :now
WHERE id = :message AND session_id = :session AND hidden_at IS NULL
"""

LAST_MESSAGE: Final = "UPDATE conversation SET last_message_id = :message WHERE id = :conv"

TOKENS: Final = """
UPDATE session SET message_count = message_count + :added,
  input_tokens = input_tokens + :tokens_in, output_tokens = output_tokens + :tokens_out
WHERE id = :session
"""

USAGE: Final = """
INSERT INTO usage (conversation_id, session_id, turn_id, actor, purpose, server, model,
  input_tokens, output_tokens, ms, at)
VALUES (:conv, :session, :turn, :actor, :purpose, :server, :model, :tokens_in, :tokens_out, :ms,
  :now)
"""

COMMITTED: Final = """
SELECT m.id AS message, e.id AS cursor FROM message m
  LEFT JOIN event e ON e.conversation_id = m.conversation_id AND e.message_id = m.id
WHERE m.turn_id = :turn AND m.conversation_id = :conv AND m.role = 'assistant'
ORDER BY m.id DESC LIMIT 1
"""

WAITING: Final = """
SELECT 1 FROM inbound WHERE conversation_id = :conv AND lane = 'turn' AND state = 'new' LIMIT 1
"""

# --- shorter history ------------------------------------------------------------------

SESSION: Final = "SELECT conversation_id, context_from FROM session WHERE id = :session"

NEXT_SEQ: Final = """
UPDATE conversation SET last_seq = last_seq + 1 WHERE id = :conv RETURNING last_seq
"""

CONTEXT: Final = "UPDATE session SET context_from = :first WHERE id = :session"
