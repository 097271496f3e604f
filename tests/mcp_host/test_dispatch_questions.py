"""Questions that servers ask inside a call: the right chat, the right answer, the right end."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from gateway.domain.form import FormAction, FormAnswer
from gateway.domain.tools import CallState
from tests.mcp_host.hosting import (
    Person,
    arguments,
    legacy,
    lines_of,
    modern,
    running,
)
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


@requirement("case.el11")
@pytest.mark.parametrize("server", ["legacy", "modern"])
async def test_an_answered_form_reaches_the_server_and_the_call_runs_once(
    server: str, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    is_legacy = server == "legacy"
    form = {"day": "2026-03-01", "size": "s"} if is_legacy else {"size": "m"}
    person = Person(arguments(""), form=FormAnswer(action=FormAction.ACCEPT, content=form))
    entry = legacy("--runs", runs) if is_legacy else modern("--runs", runs)
    async with running(entry) as host:
        result = await host.call("order", person=person)

    answer = json.loads(result.text)
    assert (answer if is_legacy else answer["first"]) == {"action": "accept", "content": form}
    assert [(one.server, one.tool, one.timeout) for one in person.forms] == [("s", "order", 300)]
    assert lines_of(runs) == ["order"]


@requirement("elicitation.outcomes", "case.el9")
@pytest.mark.parametrize("server", ["legacy", "modern"])
@pytest.mark.parametrize("action", [FormAction.DECLINE, FormAction.CANCEL])
async def test_declining_and_cancelling_are_two_things_on_the_wire(
    server: str, action: FormAction
) -> None:
    person = Person(arguments(""), form=FormAnswer(action=action, reason="no"))
    async with running(legacy() if server == "legacy" else modern()) as host:
        result = await host.call("order", person=person)

    answer = json.loads(result.text)
    assert (answer if server == "legacy" else answer["first"]) == {"action": action.value}


async def test_an_answer_the_schema_refuses_never_leaves() -> None:
    bad = FormAnswer(action=FormAction.ACCEPT, content={"day": "tomorrow", "size": "xxl"})
    async with running(legacy()) as host:
        result = await host.call("order", person=Person(arguments(""), form=bad))

    answer, note = result.text.split("\n", 1)
    assert json.loads(answer) == {"action": "decline"}
    assert "A question of s was declined: size does not satisfy enum." in note


@requirement("elicitation.form.invalid")
@pytest.mark.parametrize("tool", ["order_odd", "order_url"])
async def test_what_cannot_be_asked_is_declined_with_the_reason_for_the_person(tool: str) -> None:
    person = Person(arguments(""))
    async with running(legacy()) as host:
        result = await host.call(tool, person=person)

    assert result.text == "decline"
    assert person.forms[0].problem


@requirement("elicitation.url_mode")
@pytest.mark.parametrize("asks", [True, False])
async def test_a_link_is_put_to_the_person_only_where_the_operator_says_so(
    asks: bool, tmp_path: Path
) -> None:
    advertised = tmp_path / "advertised"
    person = Person(arguments(""), form=FormAnswer(action=FormAction.ACCEPT, content={}))
    entry = legacy(
        "--capabilities", advertised, elicitation={"url": "ask"} if asks else {"url": False}
    )
    async with running(entry) as host:
        result = await host.call("order_url", person=person)

    (asked,) = person.forms
    assert set(json.loads(lines_of(advertised)[0])["elicitation"]) == (
        {"form", "url"} if asks else {"form"}
    )
    assert result.text == ("accept" if asks else "decline")
    assert (asked.url, asked.form.message) == ("https://example.com/x" if asks else "", "Go")
    assert ("link" in asked.problem) is not asks


@requirement("elicitation.url_mode")
@pytest.mark.parametrize(
    ("config", "form", "says", "asked"),
    [
        ({"url": "ask"}, FormAction.ACCEPT, "call it again once they say", 1),
        ({"url": "ask"}, FormAction.DECLINE, "they did not agree", 1),
        ({"url": False}, FormAction.ACCEPT, "which is declined here", 0),
        ({"url": "ask", "enabled": False}, FormAction.ACCEPT, "which is declined here", 0),
    ],
)
async def test_a_call_that_needs_a_link_opened_first_has_it_put_to_the_person(
    config: dict[str, object], form: FormAction, says: str, asked: int
) -> None:
    person = Person(arguments("https://example.com/in"), form=FormAnswer(action=form))
    async with running(legacy(elicitation=config)) as host:
        result = await host.call("needs_url", person=person)
        nameless = await host.call("needs_url")
        counted = host.status().statistics.elicitation.requests

    assert counted == asked
    assert result.state is CallState.ERROR
    assert says in result.text
    assert [request.url for request in person.forms] == ["https://example.com/in"] * asked
    assert "link" in nameless.text


async def test_several_rounds_carry_the_state_of_the_server_byte_for_byte(tmp_path: Path) -> None:
    log = tmp_path / "log"
    form = FormAnswer(action=FormAction.ACCEPT, content={"size": "s"})
    person = Person(arguments("twice"), form=form)
    async with running(modern("--log", log)) as host:
        result = await host.call("order", "twice", person=person)

    calls = [json.loads(line) for line in lines_of(log)]
    assert json.loads(result.text).keys() == {"second", "third"}
    assert [one.form.message for one in person.forms] == ["first?", "second?", "third?"]
    assert [call.get("requestState") for call in calls] == [
        None,
        'opaque "état" \\ {"n": 1}\n',
        None,
    ]
    assert len({call["id"] for call in calls}) == 3
    assert all(call["arguments"] == {"text": "twice"} for call in calls)


async def test_a_server_that_asks_for_ever_is_stopped_after_ten_rounds(tmp_path: Path) -> None:
    log = tmp_path / "log"
    form = FormAnswer(action=FormAction.ACCEPT, content={"size": "s"})
    async with running(modern("--log", log)) as host:
        result = await host.call("endless", person=Person(arguments(""), form=form))

    assert result.state is CallState.ERROR
    assert "more than 10 times" in result.text
    assert len(lines_of(log)) == 11


@pytest.mark.parametrize(
    ("tool", "says"),
    [("odd_type", "unknown type 'hologram'"), ("samples", "sampling/createMessage")],
)
async def test_a_modern_server_that_wants_what_was_not_offered_gets_an_error(
    tool: str, says: str
) -> None:
    async with running(modern()) as host:
        result = await host.call(tool)
        plain = await host.call("plain")

    assert result.state is CallState.ERROR
    assert says in result.text
    assert plain.text == "no type"


async def test_a_round_without_questions_is_simply_repeated() -> None:
    async with running(modern()) as host:
        result = await host.call("later")

    assert result.text == "ready"


async def test_a_careless_modern_server_works() -> None:
    async with running(modern("--careless")) as host:
        result = await host.call("echo", "x")

    assert result.text == "x"


@requirement("case.el6", "approval.deadline")
async def test_the_time_limit_of_a_call_stands_still_while_a_person_answers() -> None:
    for entry in (legacy(timeout=0.5), modern(timeout=0.5)):
        form = FormAnswer(action=FormAction.DECLINE)
        person = Person(arguments(""), form=form)
        person.decides.clear()
        async with running(entry) as host:
            call = asyncio.create_task(host.call("order", person=person))
            await person.asked.wait()
            await asyncio.sleep(0.8)
            person.decides.set()
            result = await call

        assert result.state is CallState.OK


@requirement("elicitation.server_cancels")
async def test_a_server_that_takes_its_question_back_withdraws_it(tmp_path: Path) -> None:
    go = tmp_path / "go"
    person = Person(arguments(str(go)))
    person.decides.clear()
    async with running(legacy()) as host:
        call = asyncio.create_task(host.call("order_then_withdraw", person=person))
        await person.asked.wait()
        go.touch()
        result = await call
        await eventually_async(lambda: person.withdrawn == 1)

    assert result.text == "withdrawn"


async def test_a_call_that_ends_withdraws_what_it_still_asks(tmp_path: Path) -> None:
    go = tmp_path / "go"
    person = Person(arguments(str(go)))
    person.decides.clear()
    async with running(legacy()) as host:
        call = asyncio.create_task(host.call("order_and_answer", person=person))
        await person.asked.wait()
        go.touch()
        result = await call

    assert result.text == "answered"
    assert person.withdrawn == 1


@pytest.mark.parametrize("server", ["legacy", "modern"])
async def test_a_cancelled_call_withdraws_what_it_asks(server: str) -> None:
    person = Person(arguments(""))
    person.decides.clear()
    async with running(legacy() if server == "legacy" else modern()) as host:
        call = asyncio.create_task(host.call("order", person=person))
        await person.asked.wait()
        call.cancel()
        await asyncio.wait({call})
        echo = await host.call("echo", "still here")

    assert call.cancelled()
    assert person.withdrawn == 1
    assert echo.text == "still here"


async def test_a_server_that_dies_withdraws_what_it_asked(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    person = Person(arguments(""))
    person.decides.clear()
    async with running(legacy("--starts", starts)) as host:
        call = asyncio.create_task(host.call("order", person=person))
        await person.asked.wait()
        os.kill(int(lines_of(starts)[0]), signal.SIGKILL)
        result = await call

    assert result.state is CallState.UNKNOWN
    assert "killed by signal 9" in result.text
    assert person.withdrawn == 1


async def test_a_question_that_could_belong_to_two_calls_is_declined_and_shown_to_nobody(
    tmp_path: Path,
) -> None:
    go = tmp_path / "go"
    async with running(legacy()) as host:
        bystander, asker = Person(arguments(str(go))), Person(arguments(""))
        other = asyncio.create_task(host.call("hold", chat="2", person=bystander))
        await eventually_async(lambda: bystander.starts == [None])
        result = await host.call("order", person=asker)
        go.touch()
        held = await other

    assert json.loads(result.text.splitlines()[0]) == {"action": "decline"}
    for text in (result.text, held.text):
        assert "unclear whom to ask: declined" in text
    for person in (bystander, asker):
        assert [("unclear whom to ask" in text, "Which" in text) for text in person.told] == [
            (True, False)
        ]
    assert bystander.forms == asker.forms == []


async def test_a_question_of_a_call_that_was_given_up_is_never_shown_in_the_next_chat() -> None:
    async with running(legacy(timeout=0.3)) as host:
        first, second = Person(arguments("")), Person(arguments(""))
        lost = await host.call("ask_later", person=first)
        result = await host.call("echo", person=second)

    assert lost.state is CallState.ERROR
    assert result.text.splitlines()[0] == "late: decline"
    assert first.forms == second.forms == []


async def test_a_form_may_be_answered_as_long_as_the_entry_says() -> None:
    person = Person(arguments(""))
    async with running(legacy(elicitation={"timeout": 7})) as host:
        await host.call("order", person=person)

    assert [form.timeout for form in person.forms] == [7]


@requirement("elicitation.capability")
async def test_forms_that_are_switched_off_are_not_advertised(tmp_path: Path) -> None:
    for name, make in (("legacy", legacy), ("modern", modern)):
        capabilities = tmp_path / name
        person = Person(arguments(""))
        entry = make("--capabilities", capabilities, elicitation={"enabled": False})
        async with running(entry) as host:
            await host.call("order", person=person)

        assert lines_of(capabilities) == ["{}"]
        assert person.forms == []
