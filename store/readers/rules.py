"""Standing rules in force."""

from collections.abc import Sequence
from typing import Final

from gateway.domain.ids import ConversationId, RuleId, SessionId
from gateway.domain.operations.upkeep import StandingRule
from gateway.domain.tools import AgreedTool, ToolSpec
from store.codec import RowLike, actor_from_text, clean, from_ms, object_from_json, storable
from store.readers.database import Database
from store.readers.decoding import decode_each
from store.sql.reads import rules as sql

MAX_RULES: Final = 1_000


class RuleReader:
    """Implements `gateway.ports.Rules`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def match(self, spec: ToolSpec, *, session: SessionId | None) -> RuleId | None:
        """Return the rule that allows this definition of a tool on this very server."""
        row = await self._database.first(
            sql.RULE,
            server=storable(spec.server),
            tool=storable(spec.name),
            server_sha=spec.server_sha,
            def_sha=spec.definition_sha,
            session=session,
        )
        return None if row is None else RuleId(row["id"])

    async def live(self) -> Sequence[StandingRule]:
        """Return the rules that are not revoked, oldest first."""
        rows = await self._database.all(sql.RULES, limit=MAX_RULES)
        return decode_each(rows, _rule_from_row, what="rule")

    async def agreed(self, server: str, tool: str) -> AgreedTool | None:
        """Return a tool as it was when somebody last allowed it."""
        row = await self._database.first(sql.AGREED, server=storable(server), tool=storable(tool))
        if row is None:
            return None
        return AgreedTool(
            definition_sha=clean(row["pinned_sha"]), definition=object_from_json(row["def"])
        )


def _rule_from_row(row: RowLike) -> StandingRule:
    conversation = row["conversation_id"]
    return StandingRule(
        id=RuleId(row["id"]),
        scope=row["scope"],
        session=None if row["session_id"] is None else SessionId(row["session_id"]),
        server=clean(row["server"]),
        tool=clean(row["tool"]),
        tool_def_sha=clean(row["tool_def_sha"]),
        granted_by=actor_from_text(row["granted_by"]),
        created_at=from_ms(row["created_at"]),
        used_count=row["used_count"],
        conversation=None if conversation is None else ConversationId(conversation),
    )
