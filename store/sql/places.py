"""Statements that make chats, conversations and sessions. Text only."""

from typing import Final

CHAT: Final = """
INSERT INTO chat (platform, account, chat_key, kind, title, created_at)
VALUES (:platform, :account, :chat, :kind, :title, :now)
ON CONFLICT (platform, account, chat_key) DO UPDATE
  SET title = CASE WHEN excluded.title <> '' THEN excluded.title ELSE chat.title END
RETURNING id
"""

FIND: Final = """
SELECT id, chat_id, user_name FROM conversation WHERE session_key = :session_key
"""

FIND_ALIAS: Final = """
SELECT c.id, c.chat_id, c.user_name FROM conversation_alias a
  JOIN conversation c ON c.id = a.conversation_id
WHERE a.session_key = :session_key
"""

CONVERSATION: Final = """
INSERT INTO conversation (chat_id, platform, account, chat_type, chat_key, thread_key, participant,
  session_key, created_at, last_at)
VALUES (:chat_id, :platform, :account, :chat_type, :chat, :thread, :participant, :session_key,
  :now, :now)
RETURNING id
"""

NAMES: Final = """
UPDATE conversation SET user_name = :user_name, display_name = :display_name,
  search_text = :search_text
WHERE id = :conv
"""

SESSION: Final = """
INSERT INTO session (conversation_id, n, started_at)
SELECT :conv, coalesce(max(n), 0) + 1, :now FROM session WHERE conversation_id = :conv
RETURNING id
"""

END_SESSION: Final = """
UPDATE session SET ended_at = :now
WHERE id = (SELECT current_session_id FROM conversation WHERE id = :conv) AND ended_at IS NULL
"""

SESSION_OF_NUMBER: Final = "SELECT id FROM session WHERE conversation_id = :conv AND n = :n"

REOPEN: Final = "UPDATE session SET ended_at = NULL WHERE id = :session"

CURRENT: Final = "UPDATE conversation SET current_session_id = :session WHERE id = :conv"

CURRENT_SESSION: Final = "SELECT current_session_id FROM conversation WHERE id = :conv"

SEEN: Final = """
INSERT INTO directory (platform, account, chat_key, thread_key, chat_type, name, name_folded,
  source, seen_at)
VALUES (:platform, :account, :chat, :thread, :chat_type, :name, :name_folded, 'seen', :now)
ON CONFLICT (platform, account, chat_key, thread_key) DO UPDATE
  SET seen_at = excluded.seen_at, gone_at = NULL,
    name = CASE WHEN :named AND directory.source = 'seen' THEN excluded.name
           ELSE directory.name END,
    name_folded = CASE WHEN :named AND directory.source = 'seen' THEN excluded.name_folded
                  ELSE directory.name_folded END
"""

NEXT_ORD: Final = """
UPDATE conversation SET last_ord = last_ord + :parts WHERE id = :conv RETURNING last_ord, chat_id
"""

# --- a chat that got another id -------------------------------------------------

OLD_CHAT: Final = """
SELECT id, kind, title FROM chat
WHERE platform = :platform AND account = :account AND chat_key = :old
"""

LEAVE_CHAT: Final = "UPDATE chat SET migrated_to = :chat_id WHERE id = :old_id"

OF_CHAT: Final = """
SELECT id, platform, account, chat_type, chat_key, thread_key, participant, session_key
FROM conversation WHERE platform = :platform AND account = :account AND chat_key = :old
ORDER BY id
"""

ALIAS: Final = """
INSERT INTO conversation_alias (session_key, conversation_id) VALUES (:old_key, :conv)
ON CONFLICT (session_key) DO UPDATE SET conversation_id = excluded.conversation_id
"""

MOVE: Final = """
UPDATE conversation SET chat_id = :chat_id, chat_key = :new, session_key = :session_key,
  search_text = replace(search_text, :old_text, :new_text)
WHERE id = :conv
"""

MOVE_DELIVERIES: Final = """
UPDATE delivery SET chat_id = :chat_id
WHERE conversation_id = :conv AND state IN ('ready', 'sending', 'uncertain')
"""

MOVE_DIRECTORY: Final = """
UPDATE OR IGNORE directory SET chat_key = :new
WHERE platform = :platform AND account = :account AND chat_key = :old
"""

MOVE_HOME: Final = """
UPDATE home_channel SET chat_key = :new
WHERE platform = :platform AND account = :account AND chat_key = :old
"""
