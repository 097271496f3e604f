"""Statements of writing down files. Text only."""

from typing import Final

ANNOUNCED: Final = """
INSERT INTO attachment (message_id, kind, name, media_type, size, native_ref, state, created_at)
VALUES (:message, :kind, :name, :media_type, :size, :ref, 'pending', :now)
"""

TO_SEND: Final = """
INSERT INTO attachment (message_id, delivery_id, kind, name, media_type, size, sha256, path_key,
  state, created_at)
VALUES (:message, :delivery, :kind, :name, :media_type, :size, :sha, :key, 'stored', :now)
"""

SETTLE: Final = """
UPDATE attachment SET state = :state, path_key = :key, size = coalesce(:size, size),
  sha256 = :sha, error = :problem
WHERE id = :file AND state = 'pending'
"""
