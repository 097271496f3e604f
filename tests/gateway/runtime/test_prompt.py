from dataclasses import replace
from datetime import date

from gateway.domain.tools import ServerState
from gateway.runtime.config import ToolSearchConfig
from gateway.runtime.prompt import listing_budget, system_prompt
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement


def prompt(host: FakeTools, *, deferred: bool = True, tokens: int = 4_000, own: str = "") -> str:
    return system_prompt(
        configured=own,
        today=date(2026, 1, 2),
        servers=host.servers(),
        tools=host.tools(),
        deferred=deferred,
        listing_tokens=tokens,
    )


def test_it_holds_the_configured_text_the_date_and_every_tool() -> None:
    text = prompt(FakeTools(specs=[tool("add_note")]), own="Speak like a pirate.")

    assert "Speak like a pirate." in text
    assert "Friday, 2026-01-02" in text
    assert "mcp__demo__add_note" in text


@requirement("tool_search.listing")
def test_a_listing_over_its_budget_shrinks_to_servers_with_counts() -> None:
    text = prompt(FakeTools(specs=[tool(f"t{n}") for n in range(500)]), tokens=1_000)

    assert "- demo: 500 tools" in text
    assert "mcp__demo__t1" not in text


@requirement("tool_search.listing")
def test_servers_that_still_connect_or_are_parked_are_named() -> None:
    host = FakeTools(connecting=["slow"])
    status = replace(host.servers()[0], name="gone", state=ServerState.PARKED, reason="401\nno")
    text = system_prompt(
        configured="",
        today=date(2026, 1, 2),
        servers=[*host.servers(), status],
        tools=[],
        deferred=True,
        listing_tokens=100,
    )

    assert "slow: still connecting" in text
    assert "gone: not available (401 no)" in text


@requirement("tool_search.listing")
def test_the_budget_is_a_share_of_the_window_and_never_above_the_setting() -> None:
    config = ToolSearchConfig(threshold_pct=5, listing_max_tokens=4_000)

    assert listing_budget(config, 10_000) == 500
    assert listing_budget(config, 1_000_000) == 4_000
    assert listing_budget(replace(config, listing_max_tokens=50_000), None) == 10_000
