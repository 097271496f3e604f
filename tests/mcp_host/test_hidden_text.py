"""Characters that nobody sees: gone from whatever a model or a person gets, and nothing else is."""

import json

import pytest

from gateway.domain.tools import CallState, ServerState
from gateway.runtime.calls import answer_text
from tests.fakes.mcp.legacy_server import SCOTLAND, VISIBLE
from tests.mcp_host.hosting import Person, arguments, legacy, running
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

SHOWN = f"\U0001f3f4{VISIBLE}"
"""What is left of `MARKED`: the flag that spelled nothing, and all that is meant to be seen."""

FIELDS = pytest.mark.parametrize(
    ("tool", "holds"),
    [
        (
            "hidden",
            (
                f"plain{SHOWN}",
                f"inside{SHOWN}",
                f"demo://a{SHOWN}",
                f"picture{SHOWN}",
                f"image/png{SHOWN}",
                f"plan{SHOWN}",
                f"demo://plan{SHOWN}",
                f"hologram{SHOWN}",
                f'"key{SHOWN}": ["value{SHOWN}"]',
                f'"com.example/shown{SHOWN}": "kept{SHOWN}"',
            ),
        ),
        ("hidden_error", (f"plain{SHOWN}", f"value{SHOWN}")),
        ("hidden_refusal", (f"refused{SHOWN}",)),
        ("hidden_end", (f"fatal{SHOWN}",)),
    ],
)


def is_clean(text: str) -> bool:
    return not any(0xE0000 <= ord(letter) <= 0xE007F for letter in text.replace(SCOTLAND, ""))


@requirement("case.mh14", "case.mh15", "threat.s11")
@FIELDS
async def test_no_field_of_a_result_or_an_error_keeps_them_and_flags_stay(
    tool: str, holds: tuple[str, ...]
) -> None:
    async with running(legacy()) as host:
        result = await host.call(tool)

    shown = answer_text(result)
    names = [f"{one.name}{one.media_type}" for one in result.attachments]
    assert all(is_clean(text) for text in (shown, *names))
    assert [text for text in holds if text not in shown] == []


@requirement("case.mh14", "case.mh15", "threat.s11")
async def test_nothing_a_tool_is_described_by_keeps_them() -> None:
    async with running(legacy("--odd-tools")) as host:
        spec = host.host.find("mcp__s__marked")

    assert spec is not None
    assert spec.description == f"Does it{SHOWN}."
    assert spec.title == f"Title{SHOWN}"
    assert spec.input_schema["properties"] == {f"day{SHOWN}": {"enum": [f"mon{SHOWN}"]}}
    assert is_clean(json.dumps(spec.input_schema, ensure_ascii=False))


@requirement("case.mh14", "threat.s11")
async def test_a_question_shows_them_to_nobody() -> None:
    person = Person(arguments(""))
    async with running(legacy()) as host:
        await host.call("hidden_form", person=person)

    (request,) = person.forms
    (field,) = request.form.fields
    assert is_clean(request.form.message + field.label + field.help)
    assert request.form.message.startswith("When?")
    assert VISIBLE in field.label


@requirement("case.mh14", "threat.s11")
async def test_why_a_server_went_away_is_told_without_them() -> None:
    async with running(legacy()) as host:
        lost = await host.call("hidden_end")
        await eventually_async(lambda: host.status().state is not ServerState.READY)
        reason = host.status().reason

    assert lost.state is CallState.UNKNOWN
    assert reason.startswith("server exited with code 7: fatal")
    assert is_clean(reason)


@requirement("case.mh13")
async def test_text_and_structured_content_both_reach_the_model_also_of_an_error() -> None:
    async with running(legacy()) as host:
        fine, failed = await host.call("rich"), await host.call("fail")

    assert (fine.state, failed.state) == (CallState.OK, CallState.ERROR)
    assert "1 item" in answer_text(fine)
    assert 'Structured result: {"items": ["a", null, 12345678901234567890]}' in answer_text(fine)
    assert "1 problem" in answer_text(failed)
    assert 'Structured result: {"problems": ["disk full"]}' in answer_text(failed)
