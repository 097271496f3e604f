"""For any arguments: what the card shows, what its row holds and what the server gets are the same."""

import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gateway.domain.canonical import canonical, sha256_of
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.runtime import RuntimeConfig
from tests.fakes.house import House, running
from tests.fakes.model import ScriptedModel, calls, says
from tests.mcp_host import hosting
from tests.support.requirement import requirement

WRITE: Final = "mcp__s__write"
BIDI: Final = "\u202a\u202e\u2066\u2069\u200b\u200d\ufeff\u2028"
TAGS: Final = "".join(chr(0xE0000 + offset) for offset in (1, 0x41, 0x7F))
STEERING: Final = "\x00\x07\x08\x1b\r\n\t\x7f\x9b`\\\"'<>&*_[]()"
LETTERS: Final = st.characters(codec=None) | st.sampled_from(BIDI + TAGS + STEERING)
TEXTS: Final = st.text(LETTERS, max_size=60)


def _repeated(text: str, times: int) -> str:
    return text * times


LONG: Final = st.builds(_repeated, st.text(LETTERS, max_size=20), st.integers(0, 500))
VALUES: Final[st.SearchStrategy[object]] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | LONG,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
ARGUMENTS: Final = st.dictionaries(TEXTS, VALUES, max_size=6).filter(
    lambda given: len(canonical(given)) <= 60_000
)
TEN_KILOBYTES: Final = {"text": "x" * 10_000 + "\u202e; rm -rf /"}


@dataclass(slots=True, kw_only=True)
class Shop:
    """A gateway whose model calls what a test says, on a server that writes down what it got."""

    house: House
    model: ScriptedModel
    log: Path
    done: int = 0

    async def allow(self, arguments: Mapping[str, object]) -> tuple[str, str, Any]:
        """Have a call allowed; return its card, the digest in its row, and what the server got."""
        number = self.done = self.done + 1
        self.model.script += [calls((WRITE, arguments)), says(f"done {number}")]
        await self.house.say("go")
        await self.house.press("Allow once", card=number - 1)
        await self.house.adapter.until(lambda: f"done {number}" in self.house.adapter.texts())
        card = self.house.adapter.cards()[number - 1]
        sha = self.house.rows("SELECT args_sha FROM question ORDER BY rowid DESC LIMIT 1")[0][0]
        got = json.loads(hosting.lines_of(self.log)[-1])["arguments"]
        assert len(hosting.lines_of(self.log)) == number
        return card.body, sha, got


@asynccontextmanager
async def shop(home: Path) -> AsyncGenerator[Shop]:
    log = home / "log"
    entry = hosting.modern("--log", log, tools={"policy": {"*": "ask"}})
    model = ScriptedModel()
    config = RuntimeConfig(approvals=ApprovalsConfig(redact=()))
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(hosting.running(entry))
        house = await stack.enter_async_context(
            running(home, model, tools=servers.host, config=config)
        )
        yield Shop(house=house, model=model, log=log)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[BlockingPortal, Shop]]:
    """One gateway for all the examples."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(shop(tmp_path_factory.mktemp("shop"))) as found,
    ):
        yield portal, found


@requirement("threat.s5", "threat.s6")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(arguments=ARGUMENTS)
@example(arguments=TEN_KILOBYTES)
@example(arguments={BIDI: TAGS, "\ud800": [1.0, 1, 10**30, -0.0]})
@example(arguments={})
def test_the_bytes_that_run_are_those_whose_digest_the_card_carried(
    opened: tuple[BlockingPortal, Shop], arguments: Mapping[str, object]
) -> None:
    portal, found = opened

    card, sha, got = portal.call(found.allow, arguments)

    assert canonical(got) == canonical(arguments)
    assert sha256_of(canonical(got)) == sha
    shown = card[card.index("\n{") : card.rindex("\nAsked by")]
    assert canonical(json.loads(shown)) == canonical(arguments)
    assert not set(shown) & set(BIDI + TAGS)
    assert all(
        sign == "\n" or sign == "\t" or sign.isprintable() for sign in shown if sign < "\x80"
    )
