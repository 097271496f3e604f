from pathlib import Path

import pytest

from gateway.domain.errors import ContextTooLong, ModelUnavailable
from gateway.domain.model import ModelRequest
from gateway.runtime.config import GatewayConfig
from gateway.runtime.history import SUMMARY_HEADING
from gateway.runtime.runtime import RuntimeConfig
from gateway.runtime.tokens import message_tokens
from tests.fakes.clock import HastyClock
from tests.fakes.house import House, running
from tests.fakes.loopback import chat
from tests.fakes.model import ScriptedModel, says
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

WINDOW = 4_000
LONG = "x" * 2_000


async def converse(house: House, turns: int, *, text: str = LONG) -> None:
    for n in range(turns):
        await house.say(f"{n} {text}")
        await house.replies(n + 1)


def is_summary_request(request: ModelRequest) -> bool:
    return "Summarise" in request.system


async def test_the_model_sees_what_was_said_before_in_this_session_only(tmp_path: Path) -> None:
    model = ScriptedModel([says("one"), says("two"), says("three")])
    config = RuntimeConfig(gateway=GatewayConfig(system_prompt="Be brief."))

    async with running(tmp_path, model, config=config) as house:
        await house.say("a")
        await house.replies(1)
        await house.say("b")
        await house.replies(2)
        await house.give("new")
        await house.say("c")
        await house.adapter.until(lambda: "three" in house.adapter.texts())

    assert [item.text for item in model.requests[1].history] == ["a", "one", "b"]
    assert [item.text for item in model.requests[2].history] == ["c"]
    assert "Be brief." in model.requests[0].system


@requirement("model.history")
async def test_every_request_stays_within_the_window_however_long_the_conversation(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(context_window=WINDOW)

    async with running(tmp_path, model) as house:
        await converse(house, 12)

    for request in model.requests:
        assert message_tokens(request.history) <= WINDOW * 0.75
    assert model.requests[-1].history[-1].text.startswith("11 ")


@requirement("model.history")
async def test_compaction_leaves_a_summary_and_the_last_messages_as_they_were(
    tmp_path: Path,
) -> None:
    class Summarising(ScriptedModel):
        async def complete(self, request: ModelRequest, *, on_text: object = None):
            self.requests.append(request)
            return says("THE SUMMARY" if is_summary_request(request) else "short")

    model = Summarising(context_window=WINDOW)

    async with running(tmp_path, model) as house:
        await converse(house, 8)
        spent = house.rows("SELECT DISTINCT purpose FROM usage ORDER BY purpose")
        kept = house.rows("SELECT count(*) FROM message WHERE role = 'user'")

    last = model.requests[-1].history
    assert last[0].text == f"{SUMMARY_HEADING}\nTHE SUMMARY"
    assert [item.text[:2] for item in last[-3:]] == ["6 ", "sh", "7 "]
    summaries = [item for item in model.requests if is_summary_request(item)]
    assert 1 <= len(summaries) < 8
    # A later summary is made of the earlier one and what came after it.
    assert any("Earlier summary: THE SUMMARY" in item.history[0].text for item in summaries[1:])
    assert spent == [("summary",), ("turn",)]
    assert kept == [(8,)]


@requirement("model.errors", "model.history")
async def test_a_context_that_is_too_long_is_compacted_and_asked_again_once(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(
        [
            *[says(f"answer {n} {LONG}") for n in range(4)],
            ContextTooLong("m"),
            says("THE SUMMARY"),
            says("fits now"),
        ],
        context_window=40_000,
    )

    async with running(tmp_path, model) as house:
        await converse(house, 5)
        assert house.adapter.texts()[-1] == "fits now"
        assert house.rows("SELECT count(*) FROM message WHERE role = 'summary'") == [(1,)]

    too_long, summary, again = model.requests[-3:]
    assert is_summary_request(summary)
    assert again.history[0].text == f"{SUMMARY_HEADING}\nTHE SUMMARY"
    assert message_tokens(again.history) < message_tokens(too_long.history)
    assert again.history[-1] == too_long.history[-1]


async def test_without_a_summary_older_messages_are_left_out_and_the_answer_still_comes(
    tmp_path: Path,
) -> None:
    class NoSummaries(ScriptedModel):
        async def complete(self, request: ModelRequest, *, on_text: object = None):
            self.requests.append(request)
            if is_summary_request(request):
                raise ModelUnavailable("m", "overloaded")
            return says("short")

    model = NoSummaries(context_window=WINDOW)

    async with running(tmp_path, model, clock=HastyClock()) as house:
        await converse(house, 6)
        assert house.adapter.texts(chat()) == ["short"] * 6
        assert house.rows("SELECT count(*) FROM message WHERE role = 'summary'") == [(0,)]
