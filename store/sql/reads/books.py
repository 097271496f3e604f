"""Usage and audit."""

from typing import Final

from store.sql.lines import lines

USAGE: Final = lines(
    "SELECT model, sum(input_tokens + output_tokens) AS tokens FROM usage WHERE at >= :since",
    "GROUP BY model ORDER BY model",
)
USAGE_OF: Final = lines(
    "SELECT model, sum(input_tokens + output_tokens) AS tokens FROM usage",
    "WHERE actor = :actor AND at >= :since GROUP BY model ORDER BY model",
)
AUDIT: Final = lines(
    "SELECT id, at, actor, surface, action, subject, detail FROM audit",
    "WHERE id < :before ORDER BY id DESC LIMIT :limit",
)
