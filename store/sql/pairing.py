"""Statements of letting strangers in by a code. Text only."""

from typing import Final

# A code that ran out no longer stands in the way of a new one.
RUN_OUT: Final = """
UPDATE pairing SET state = 'expired', code_hash = NULL, code_salt = NULL
WHERE state = 'pending' AND expires_at <= :now
"""

STANDS: Final = """
SELECT 1 FROM pairing WHERE platform = :platform AND account = :account AND user_id = :user
  AND (state = 'approved' OR created_at > :not_since)
UNION ALL
SELECT 1 FROM (SELECT count(*) AS pending FROM pairing
               WHERE platform = :platform AND account = :account AND state = 'pending')
WHERE pending >= :most_pending
LIMIT 1
"""

REPLACE: Final = """
UPDATE pairing SET state = 'expired', code_hash = NULL, code_salt = NULL
WHERE platform = :platform AND account = :account AND user_id = :user AND state = 'pending'
"""

OFFER: Final = """
INSERT INTO pairing (platform, account, user_id, user_name, code_hash, code_salt, state,
  created_at, expires_at)
VALUES (:platform, :account, :user, :name, :hash, :salt, 'pending', :now, :expires_at)
"""

APPROVE: Final = """
UPDATE pairing SET state = 'approved', code_hash = NULL, code_salt = NULL, decided_by = :actor,
  decided_at = :now
WHERE id = :pairing AND state = 'pending' AND expires_at > :now
RETURNING id, platform, account, user_id, user_name, code_hash, code_salt, state, created_at,
  expires_at, decided_by, decided_at
"""

REVOKE: Final = """
UPDATE pairing SET state = 'revoked', code_hash = NULL, code_salt = NULL, decided_by = :actor,
  decided_at = :now
WHERE id = :pairing AND state IN ('pending', 'approved')
RETURNING id, platform, account, user_id, user_name, code_hash, code_salt, state, created_at,
  expires_at, decided_by, decided_at
"""

MISS: Final = """
UPDATE pairing SET attempts = attempts + 1,
  state = CASE WHEN attempts + 1 >= :most THEN 'expired' ELSE state END,
  code_hash = CASE WHEN attempts + 1 >= :most THEN NULL ELSE code_hash END,
  code_salt = CASE WHEN attempts + 1 >= :most THEN NULL ELSE code_salt END
WHERE state = 'pending' AND (:everywhere OR platform = :platform)
"""

# Where the code was told is where its holder reads that it was approved.
TOLD_IN: Final = """
SELECT conversation_id, chat_id FROM delivery WHERE group_key = :group_key ORDER BY part LIMIT 1
"""
