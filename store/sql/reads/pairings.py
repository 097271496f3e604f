"""People who were given a code."""

from typing import Final

from store.sql.lines import lines

PAGE: Final = lines(
    "SELECT id, platform, account, user_id, user_name, code_hash, code_salt, state, created_at,",
    "  expires_at, decided_by, decided_at",
    "FROM pairing WHERE state IN (SELECT value FROM json_each(:states))",
    "ORDER BY id DESC LIMIT :limit",
)
