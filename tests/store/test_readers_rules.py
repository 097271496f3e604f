import dataclasses

import pytest

from gateway.domain.ids import Actor, SessionId
from gateway.domain.operations.upkeep import StandingRule
from gateway.domain.tools import ToolSpec
from store.codec import from_ms
from store.readers import OpenReaders
from tests.store.rows import Rows

pytestmark = pytest.mark.anyio


def spec(**changed: str) -> ToolSpec:
    known = ToolSpec(
        server="demo",
        name="add",
        alias="mcp__demo__add",
        title="",
        description="",
        input_schema={},
        definition_sha="def",
        server_sha="srv",
    )
    return dataclasses.replace(known, **changed)


def grant(rows: Rows, **values: object) -> int:
    row: dict[str, object] = {
        "scope": "always",
        "server": "demo",
        "server_sha": "srv",
        "tool": "add",
        "tool_def_sha": "def",
        "granted_by": "telegram:7",
        "created_at": 5,
    }
    return rows.insert("standing_rule", **{**row, **values})


async def test_a_rule_covers_one_definition_of_one_tool_of_one_server(
    readers: OpenReaders, rows: Rows
) -> None:
    rule = grant(rows)
    match = readers.ports.rules.match

    assert await match(spec(), session=None) == rule
    for changed in ("server", "name", "definition_sha", "server_sha"):
        assert await match(spec(**{changed: "x"}), session=None) is None


async def test_a_rule_of_a_session_ends_with_it_and_a_revoked_one_at_once(
    readers: OpenReaders, rows: Rows
) -> None:
    rows.conversation()
    rule = grant(rows, scope="session", session_id=1)
    grant(rows, revoked_at=1)
    match = readers.ports.rules.match

    assert await match(spec(), session=SessionId(1)) == rule
    assert await match(spec(), session=SessionId(2)) is None
    assert await match(spec(), session=None) is None


async def test_live_rules_are_listed_with_what_they_cover(readers: OpenReaders, rows: Rows) -> None:
    conversation = rows.conversation()
    rule = grant(rows, scope="session", session_id=1, used_count=2)
    grant(rows, revoked_at=1)

    (live,) = await readers.ports.rules.live()

    assert live == StandingRule(
        id=live.id,
        scope="session",
        session=SessionId(1),
        server="demo",
        tool="add",
        tool_def_sha="def",
        granted_by=Actor(platform="telegram", id="7"),
        created_at=from_ms(5),
        used_count=2,
        conversation=live.conversation,
    )
    assert (live.id, live.conversation) == (rule, conversation)
