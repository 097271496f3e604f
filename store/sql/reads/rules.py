"""Standing rules."""

from typing import Final

from store.sql.lines import lines

RULE: Final = lines(
    "SELECT id FROM standing_rule WHERE server = :server AND tool = :tool AND revoked_at IS NULL",
    "  AND server_sha = :server_sha AND tool_def_sha = :def_sha",
    "  AND (scope = 'always' OR session_id = :session) LIMIT 1",
)
AGREED: Final = lines(
    "SELECT pinned_sha, def FROM mcp_tool",
    "WHERE server = :server AND name = :tool AND pinned_sha IS NOT NULL",
)
RULES: Final = lines(
    "SELECT r.id, r.scope, r.session_id, r.server, r.tool, r.tool_def_sha, r.granted_by,",
    "  r.created_at, r.used_count, s.conversation_id",
    "FROM standing_rule r LEFT JOIN session s ON s.id = r.session_id",
    "WHERE r.revoked_at IS NULL ORDER BY r.id LIMIT :limit",
)
