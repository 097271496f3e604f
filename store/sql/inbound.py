"""Statements of accepting what a platform delivered. Text only."""

from typing import Final

# The id the message will get is known before it is inserted, which saves two updates.
MESSAGE_INBOUND: Final = """
INSERT INTO inbound (dedupe, conversation_id, kind, lane, actor, payload, message_id, sent_at,
  received_at)
VALUES (:dedupe, :conv, 'message', :lane, :actor, :payload, :message, :sent_at, :now)
ON CONFLICT (dedupe) DO NOTHING
"""

INBOUND: Final = """
INSERT INTO inbound (dedupe, conversation_id, kind, lane, actor, payload, message_id, state,
  sent_at, received_at)
VALUES (:dedupe, :conv, :kind, :lane, :actor, :payload, :message, :state, :sent_at, :now)
ON CONFLICT (dedupe) DO NOTHING
"""

# Two statements: RETURNING takes a table of its own in SQLite and costs three times the SELECT.
NEXT: Final = """
SELECT last_seq + 1 AS seq, current_session_id AS session FROM conversation WHERE id = :conv
"""

CONVERSATION: Final = """
UPDATE conversation SET last_seq = :seq, last_at = :now, last_message_id = :message,
  ready_at = CASE WHEN :turn THEN coalesce(ready_at, :ready) ELSE ready_at END
WHERE id = :conv
"""

READY: Final = "UPDATE conversation SET ready_at = coalesce(ready_at, :ready) WHERE id = :conv"

MESSAGE: Final = """
INSERT INTO message (id, conversation_id, session_id, seq, role, author, author_name, body,
  native_id, reply_to, created_at)
VALUES (:message, :conv, :session, :seq, 'user', :actor, :name, :body, :native_id, :reply_to, :now)
ON CONFLICT (conversation_id, native_id) WHERE native_id IS NOT NULL DO NOTHING
"""

COUNT: Final = "UPDATE session SET message_count = message_count + :added WHERE id = :session"

EVENT: Final = """
INSERT INTO event (kind, conversation_id, message_id, at)
VALUES ('message', :conv, :message, :now)
"""

CURSOR: Final = """
INSERT INTO platform_cursor (platform, account, name, value, updated_at)
VALUES (:platform, :account, :name, :value, :now)
ON CONFLICT (platform, account, name) DO UPDATE
  SET value = excluded.value, updated_at = excluded.updated_at
"""

BY_NATIVE: Final = """
SELECT m.id, m.session_id, m.role, m.deleted_at, i.id AS inbound_id, i.state, i.payload
FROM message m LEFT JOIN inbound i ON i.message_id = m.id AND i.kind = 'message'
  AND i.conversation_id = m.conversation_id AND i.state = 'new'
WHERE m.conversation_id = :conv AND m.native_id = :native_id
"""

EDIT: Final = "UPDATE message SET body = :body, edited_at = :now WHERE id = :message"

DELETE: Final = "UPDATE message SET deleted_at = :now WHERE id = :message"

REPHRASE: Final = "UPDATE inbound SET payload = :payload WHERE id = :inbound AND state = 'new'"

DROP: Final = "UPDATE inbound SET state = 'dropped' WHERE id = :inbound AND state = 'new'"

FINISH: Final = """
UPDATE inbound SET state = 'done' WHERE id = :inbound AND state IN ('new', 'taken')
"""
