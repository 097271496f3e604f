"""Statements of asking and settling. Text only."""

from typing import Final

QUESTION: Final = """
INSERT INTO question (id, short, kind, conversation_id, shown_in, session_id, turn_id, step_n,
  requester, approvers, quorum, actions, server, server_sha, tool, tool_def_sha, args, args_sha,
  form, body, state, created_at, expires_at)
VALUES (:question, :short, :kind, :conv, :shown_in, :session, :turn, :n, :actor, :approvers,
  :quorum, :actions, :server, :server_sha, :tool, :def_sha, :args, :args_sha, :form, :body,
  'pending', :created_at, :expires_at)
ON CONFLICT DO NOTHING
"""

SHORT_TAKEN: Final = """
SELECT 1 FROM question WHERE short = :short AND state = 'pending'
"""

STEP: Final = "UPDATE step SET question_id = :question WHERE turn_id = :turn AND n = :n"

BUTTON: Final = """
INSERT INTO button (token, question_id, action, argument, created_at)
VALUES (:token, :question, :action, :argument, :now)
"""

PROGRESS: Final = """
INSERT INTO form_progress (question_id, field, updated_at) VALUES (:question, :field, :now)
"""

CARD: Final = "UPDATE question SET card_delivery_id = :delivery WHERE id = :question"

EVENT: Final = """
INSERT INTO event (kind, conversation_id, question_id, at)
VALUES (:kind, :conv, :question, :now)
RETURNING id
"""

# --- one field ---------------------------------------------------------------------

FORM: Final = """
SELECT p.rev, p.field, p.answers, p.skipped, q.state, q.shown_in, q.expires_at,
  q.card_delivery_id
FROM form_progress p JOIN question q ON q.id = p.question_id
WHERE p.question_id = :question
"""

ANSWER: Final = """
UPDATE form_progress SET answers = :answers, skipped = :skipped, field = :field, rev = rev + 1,
  updated_at = :now
WHERE question_id = :question AND rev = :rev
RETURNING rev, field, answers, skipped
"""

PRESS: Final = """
UPDATE button SET used_at = :now, used_by = :actor
WHERE token = :token AND question_id = :question AND used_at IS NULL
"""

# --- the decision -------------------------------------------------------------------

EXISTS: Final = "SELECT 1 FROM question WHERE id = :question"

VOTE: Final = """
INSERT INTO vote (question_id, actor, surface, action, outcome, reason, at)
VALUES (:question, :actor, :surface, :action, :outcome, :reason, :now)
ON CONFLICT (question_id, actor) WHERE outcome = 'counted' DO NOTHING
RETURNING id
"""

ALLOWED_BY: Final = """
SELECT action FROM vote
WHERE question_id = :question AND outcome = 'counted' AND action LIKE 'allow-%'
"""

UNSHOWN: Final = """
SELECT 1 FROM delivery WHERE group_key = :group_key AND kind = 'file' AND state <> 'sent'
"""

SETTLE: Final = """
UPDATE question SET state = :state, decision = :action, decided_by = :actor,
  decided_via = :surface, reason = :reason, content = :content, decided_at = :now
WHERE id = :question AND state = 'pending' AND expires_at > :now AND args_sha = :args_sha
  AND (:needs_quorum = 0
       OR quorum <= (SELECT count(*) FROM vote WHERE question_id = :question
                     AND outcome = 'counted' AND action LIKE 'allow-%'))
RETURNING id
"""

RULE: Final = """
INSERT INTO standing_rule (scope, session_id, server, server_sha, tool, tool_def_sha, granted_by,
  question_id, created_at)
SELECT :scope, CASE :scope WHEN 'session' THEN q.session_id END, q.server, q.server_sha,
  CASE q.kind WHEN 'sampling' THEN '' ELSE q.tool END, q.tool_def_sha, :actor, q.id, :now
FROM question q WHERE q.id = :question AND NOT EXISTS (
  SELECT 1 FROM standing_rule r WHERE r.scope = :scope AND r.revoked_at IS NULL
    AND r.server = q.server AND r.server_sha = q.server_sha AND r.tool_def_sha = q.tool_def_sha
    AND r.tool = CASE q.kind WHEN 'sampling' THEN '' ELSE q.tool END
    AND (:scope = 'always' OR r.session_id = q.session_id))
"""

CLOSE: Final = """
UPDATE question SET state = :state, decision = :action, decided_via = :surface, reason = :reason,
  decided_at = :now
WHERE id = :question AND state = 'pending' AND (:due = 0 OR expires_at <= :now)
RETURNING id
"""
