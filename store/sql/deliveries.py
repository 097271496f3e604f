"""Statements of filling and emptying the outbox. Text only."""

from typing import Final

from store.sql.columns import DELIVERY

ADD: Final = """
INSERT INTO delivery (conversation_id, chat_id, ord, kind, origin, turn_id, message_id,
  question_id, group_key, part, idem_key, body, payload, next_at, created_at)
VALUES (:conv, :chat_id, :ord, :kind, :origin, :turn, :message, :question, :group_key, :part,
  :idem_key, :body, :payload, :now, :now)
RETURNING id
"""

EDIT: Final = """
INSERT INTO delivery (conversation_id, chat_id, ord, kind, origin, question_id, edits_id,
  group_key, idem_key, body, payload, next_at, created_at)
VALUES (:conv, :chat_id, :ord, 'edit', :origin, :question, :target, :group_key, :idem_key, :body,
  :payload, :now, :now)
ON CONFLICT (edits_id) WHERE kind = 'edit' AND state = 'ready' DO UPDATE
  SET body = excluded.body, payload = excluded.payload, group_key = excluded.group_key,
    idem_key = excluded.idem_key
RETURNING id
"""

TARGET: Final = "SELECT conversation_id, state FROM delivery WHERE id = :delivery"

GROUP: Final = "SELECT id FROM delivery WHERE group_key = :group_key ORDER BY part"

NOTE: Final = """
INSERT INTO message (id, conversation_id, session_id, seq, role, author, body, created_at)
VALUES (:message, :conv, :session, :seq, 'note', 'agent', :body, :now)
"""

NOTED: Final = """
UPDATE conversation SET last_seq = last_seq + 1, last_at = :now WHERE id = :conv
RETURNING last_seq, current_session_id
"""

CLAIM: Final = """
UPDATE delivery SET state = 'sending', attempts = attempts + 1, lease_owner = :me,
  lease_until = :until, sending_at = :now
WHERE id = (SELECT d.id FROM delivery d JOIN chat c ON c.id = d.chat_id
  WHERE d.state = 'ready' AND d.next_at <= :now AND c.platform = :platform
    AND c.account = :account AND coalesce(c.parked_until, 0) <= :now
    AND c.budget_tat <= :now + :burst
    AND (d.kind <> 'edit'
      OR (EXISTS (SELECT 1 FROM delivery t WHERE t.id = d.edits_id AND t.state = 'sent')
        AND NOT EXISTS (SELECT 1 FROM delivery e
                        WHERE e.conversation_id = d.conversation_id AND e.edits_id = d.edits_id
                          AND e.state IN ('ready', 'sending', 'uncertain') AND e.id < d.id)))
    AND ((d.kind = 'edit' AND d.body <> '')
      OR NOT EXISTS (SELECT 1 FROM delivery p
                     WHERE p.conversation_id = d.conversation_id AND p.ord < d.ord
                       AND p.kind <> 'edit' AND p.state IN ('ready', 'sending', 'uncertain')))
  ORDER BY d.next_at, d.id LIMIT 1)
RETURNING id, chat_id, kind
"""

CLAIMED: Final = DELIVERY + "\nWHERE d.id = :delivery"

BUDGET: Final = """
UPDATE chat SET budget_tat = max(budget_tat, :now) + :cost WHERE id = :chat_id
"""

MARKS: Final = "SELECT marks FROM delivery WHERE id = :delivery"

SENT: Final = """
UPDATE delivery SET state = 'sent', native_id = :native_id, marks = :marks, sent_at = :now,
  lease_owner = NULL, lease_until = NULL
WHERE id = :delivery AND state IN ('sending', 'uncertain')
"""

LATER: Final = """
UPDATE delivery SET state = 'ready', next_at = :at, last_error = :error, marks = :marks,
  lease_owner = NULL, lease_until = NULL
WHERE id = :delivery AND state IN ('sending', 'uncertain')
"""

SUPERSEDED: Final = """
UPDATE delivery SET state = 'dead', last_error = 'superseded', lease_owner = NULL,
  lease_until = NULL
WHERE id = :delivery AND kind = 'edit' AND state IN ('sending', 'uncertain')
  AND EXISTS (SELECT 1 FROM delivery e
              WHERE e.edits_id = delivery.edits_id AND e.kind = 'edit' AND e.state = 'ready')
"""

UNWANTED: Final = """
SELECT 1 FROM delivery e
WHERE e.edits_id = :delivery AND e.kind = 'edit' AND e.state = 'ready' AND e.body = ''
"""

PREVIEW: Final = "SELECT id FROM delivery WHERE group_key = :group_key AND part = 0"

UNSENT: Final = """
UPDATE delivery SET state = 'dead', last_error = 'superseded'
WHERE id = :delivery AND state = 'ready'
"""

PARK_CHAT: Final = """
UPDATE chat SET parked_until = :at WHERE id = :chat_id AND coalesce(parked_until, 0) < :at
"""

PARK: Final = """
UPDATE chat SET parked_until = :at
WHERE id = (SELECT chat_id FROM delivery WHERE id = :delivery) AND coalesce(parked_until, 0) < :at
"""

UNSURE: Final = """
UPDATE delivery SET state = 'uncertain', last_error = :error, lease_owner = NULL,
  lease_until = NULL
WHERE id = :delivery AND state = 'sending'
"""

DEAD: Final = """
UPDATE delivery SET state = 'dead', last_error = :error, lease_owner = NULL, lease_until = NULL
WHERE id = :delivery AND state IN ('ready', 'sending', 'uncertain')
RETURNING kind, question_id, group_key, part
"""

DEAD_EDITS: Final = """
UPDATE delivery SET state = 'dead', last_error = :error
WHERE edits_id = :delivery AND state = 'ready'
"""

DEAD_CARD: Final = """
UPDATE delivery SET state = 'dead', last_error = :error
WHERE group_key = :group_key AND part > :part AND kind = 'card' AND state = 'ready'
RETURNING id
"""
