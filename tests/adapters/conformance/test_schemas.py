"""Forms by every schema of the grammar, on every platform: what leaves satisfies the schema."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gateway.domain.canonical import CanonicalJson, parse_json
from gateway.ports import Approver
from mcp_host.elicitation import form_request, reply_to
from tests.adapters.conformance.gateway import hosting
from tests.adapters.conformance.platform import NOT_SENT, Ability, Chat, Platform, Scene
from tests.adapters.conformance.schemas import CASES, Case
from tests.fakes.model import ScriptedModel, calls, says
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ASK = tool("ask")


TAGS = "\U000e0041\U000e0042\U000e007f"
LOUD = "Allow once\n1) Allow once\n[Allow once](https://evil.example) "


def asking(replies: list[Mapping[str, Any]]) -> FakeTools:
    """Return a server whose one tool asks the form of a case and notes what it got."""

    async def run(arguments: CanonicalJson, approver: Approver) -> str:
        given: Any = parse_json(arguments)
        number: int = given.get("case", 0)
        params: Mapping[str, object] = given.get("params") or CASES[number].params
        request = form_request(server="demo", server_sha="s", tool="ask", params=params)
        replies.append(reply_to(await approver.elicit(request), params).as_result())
        return "answered"

    tools = FakeTools()
    tools.add(ASK, run)
    return tools


async def answer(chat: Chat, case: Case, platform: Platform) -> None:
    """Fill a form in, what is wrong first."""
    for label, given in case.answers:
        for text, says_so in case.mistakes(label):
            told = await chat.mistake(label, text)
            assert says_so in told or told.startswith(NOT_SENT)
        if not isinstance(given, list):
            await chat.fill({label: given})
        elif platform.has(Ability.MODALS):
            # A native list has all its options at once.
            await chat.fill({label: given[-1]})
        else:
            for button in given:
                await chat.press(button)


def is_valid(content: object, schema: Mapping[str, Any]) -> bool:
    judge: Any = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return bool(judge.is_valid(content))


@requirement("elicitation.form.types", "elicitation.form.invalid", "case.el1", "case.el3")
async def test_every_schema_is_answered_with_what_satisfies_it_and_nothing_is_made_up(
    scene: Scene, tmp_path: Path, platform: Platform
) -> None:
    assert len(CASES) >= 40
    people = [scene.person(f"P{number}") for number in range(len(CASES))]
    replies: list[Mapping[str, Any]] = []
    script = [
        line for n in range(len(CASES)) for line in (calls((ASK.alias, {"case": n})), says("Over."))
    ]
    async with hosting(tmp_path, scene, ScriptedModel(script), asking(replies), people=people):
        for person, case in zip(people, CASES, strict=True):
            chat = scene.direct(person)
            await chat.say("ask")
            await answer(chat, case, platform)
            review = await chat.card("Submit")
            assert "demo · ask" in review.text
            await chat.press("Submit")
            await chat.reply("Over.")

    assert [(case.name, reply) for case, reply in zip(CASES, replies, strict=True)] == [
        (case.name, {"action": "accept", "content": case.content}) for case in CASES
    ]
    assert [case.name for case in CASES if not is_valid(case.content, case.schema)] == []


@requirement("case.el12", "threat.s28")
async def test_what_a_server_writes_on_its_card_pings_nobody_hides_nothing_and_ends(
    scene: Scene, tmp_path: Path, platform: Platform
) -> None:
    ana, replies = scene.person("Ana"), list[Mapping[str, Any]]()
    chat = scene.direct(ana)
    message = " ".join([*platform.everybody, TAGS, LOUD, "x" * 6_000])
    params: dict[str, Any] = {
        "message": message,
        "requestedSchema": {"type": "object", "properties": {}},
    }
    script = [calls((ASK.alias, {"params": params})), says("Over.")]
    async with hosting(tmp_path, scene, ScriptedModel(script), asking(replies), people=[ana]):
        await chat.say("ask")
        card = await chat.card("Submit")
        assert list(card.labels) == ["Submit", "Decline", "Cancel"]
        await chat.press("Decline")
        await chat.reply("Over.")
        await chat.until(lambda: not card.labels, what="the closed card")

    assert list(card.pings) == []
    assert "demo · ask" in card.text.splitlines()[0]
    assert not set(TAGS) & set(card.text)
    assert card.text.count("x" * 10) * 10 <= 2_000
    assert platform.units(card.text) <= 4_096
    assert replies == [{"action": "decline"}]


@requirement("elicitation.outcomes")
async def test_a_form_nobody_answers_reaches_the_server_as_cancelled(
    scene: Scene, tmp_path: Path
) -> None:
    ana, replies = scene.person("Ana"), list[Mapping[str, Any]]()
    chat = scene.direct(ana)
    script = [calls((ASK.alias, {"case": 5})), says("Over.")]
    async with hosting(
        tmp_path, scene, ScriptedModel(script), asking(replies), people=[ana], expiry=1
    ):
        await chat.say("ask")
        card = await chat.card("Yes")
        await chat.reply("Over.")
        await chat.until(lambda: not card.labels, what="the closed card")

    assert replies == [{"action": "cancel"}]
    assert "no answer in 1 s" in card.text
