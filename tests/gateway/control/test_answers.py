from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.control.http import exchange
from gateway.domain.canonical import CanonicalJson, canonical
from gateway.domain.form import FieldKind, Form, FormField, Option
from gateway.ports import Approver, FormRequest
from tests.fakes.house import rows
from tests.fakes.model import ScriptedModel, calls_tool, says
from tests.fakes.office import Office, open_office
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

DAYS = tuple(Option(value=n, label=name) for n, name in enumerate(("Monday", "Tuesday")))
FORM = Form(
    message="Plan it",
    fields=(
        FormField(name="title", kind=FieldKind.TEXT, label="Title", maximum=10),
        FormField(name="day", kind=FieldKind.CHOICE, label="Day", options=DAYS),
        FormField(name="guests", kind=FieldKind.INTEGER, label="Guests", required=False),
    ),
)


@asynccontextmanager
async def asked(home: Path, form: Form = FORM) -> AsyncGenerator[tuple[Office, str]]:
    """Let a server ask a form in Anna's chat; yields the id of the question."""

    async def plan(arguments: CanonicalJson, approver: Approver) -> str:
        answer = await approver.elicit(
            FormRequest(server="demo", server_sha="", tool="plan", form=form)
        )
        return f"{answer.action}: {canonical(dict(answer.content or {}))}"

    tools = FakeTools()
    tools.add(tool("plan"), plan)

    async def tell(request: Any) -> Any:
        return says(f"got {request.history[-1].text}")

    model = ScriptedModel([calls_tool("mcp__demo__plan"), tell])
    async with open_office(home, model, tools=tools) as office:
        await office.say("plan")
        await office.chat.until(lambda: len(office.chat.cards()) == 1)
        yield office, rows(home / "state.db", "SELECT id FROM question")[-1][0]


async def answer(office: Office, **body: object) -> tuple[int, dict[str, Any]]:
    async with exchange(office.path, "POST", "/v1/answers", body) as said:
        return said.status, dict(await said.json())


async def result(office: Office) -> str:
    await office.chat.until(lambda: bool(office.chat.texts()))
    return office.chat.texts()[-1]


@requirement("elicitation.form.types")
async def test_a_form_is_answered_field_by_field_and_then_submitted(tmp_path: Path) -> None:
    async with asked(tmp_path) as (office, question):
        first = await answer(office, id=question, rev=0, field="title", value="Party")
        second = await answer(office, id=question, rev=1, field="day", value=1)
        third = await answer(office, id=question, rev=2, field="guests", skip=True)
        edited = await answer(office, id=question, rev=3, field="title", action="edit")
        again = await answer(office, id=question, rev=4, field="title", value="Fest")
        sent = await answer(office, id=question[:5], rev=5, action="submit")
        said = await result(office)

    assert [item[0] for item in (first, second, third, edited, again, sent)] == [200] * 6
    assert {key: first[1][key] for key in ("id", "state", "rev", "field", "errors")} == {
        "id": question,
        "state": "pending",
        "rev": 1,
        "field": "day",
        "errors": {},
    }
    assert [item[1]["field"] for item in (second, third, edited, again)] == [
        "guests",
        "",
        "title",
        "",
    ]
    assert sent[1]["state"] == "accepted"
    assert said == 'got accept: {"day":1,"title":"Fest"}'


@requirement("elicitation.form.types")
async def test_all_answers_at_once_are_judged_and_shown_in_the_chat(tmp_path: Path) -> None:
    wrong = {"title": "much too long a title", "day": "Sunday", "guests": 1.5, "extra": 1}
    right = {"title": "Party", "day": "Tuesday", "guests": 3}

    async with asked(tmp_path) as (office, question):
        refused = await answer(office, id=question, answers=wrong, action="submit")
        nothing = await answer(office, id=question, answers={}, action="submit")
        taken = await answer(office, id=question, answers=right, action="submit")
        said = await result(office)
        await office.chat.until(lambda: any(item.kind == "edit" for item in office.chat.sent))

    assert (refused[0], refused[1]["code"]) == (422, "invalid_answer")
    assert set(refused[1]["errors"]) == {"title", "day", "guests", "extra"}
    assert set(nothing[1]["errors"]) == {"title", "day"}
    assert (taken[0], taken[1]["state"]) == (200, "accepted")
    assert said == 'got accept: {"day":1,"guests":3,"title":"Party"}'
    assert rows(tmp_path / "state.db", "SELECT content FROM question") == [
        ('{"day":1,"guests":3,"title":"Party"}',)
    ]


@pytest.mark.parametrize(
    ("step", "errors"),
    [
        ({"field": "title", "value": "much too long a title"}, {"title"}),
        ({"field": "title", "value": 5}, {"title"}),
        ({"field": "title", "value": None}, {"title"}),
        ({"field": "title", "skip": True}, {"title"}),
        ({"field": "day", "value": 1}, {"day"}),
        ({"field": "", "action": "edit"}, {""}),
        ({"action": "submit"}, {"title"}),
    ],
)
async def test_an_invalid_step_says_why_and_the_form_stays_where_it_is(
    tmp_path: Path, step: dict[str, Any], errors: set[str]
) -> None:
    async with asked(tmp_path) as (office, question):
        status, body = await answer(office, id=question, rev=0, **step)
        taken = await answer(office, id=question, rev=0, field="title", value="Party")

    assert (status, body["code"]) == (422, "invalid_answer")
    assert set(body["errors"]) == errors
    assert taken[0] == 200


async def test_an_older_step_is_told_how_far_the_form_really_is(tmp_path: Path) -> None:
    async with asked(tmp_path) as (office, question):
        await answer(office, id=question, rev=0, field="title", value="Party")
        status, body = await answer(office, id=question, rev=0, field="title", value="Other")

    assert (status, body["code"]) == (409, "stale")
    assert (body["rev"], body["field"]) == (1, "day")
    assert body["form"]["answers"] == {"title": "Party"}
    assert [item["name"] for item in body["form"]["fields"]] == ["title", "day", "guests"]


@pytest.mark.parametrize(("action", "state"), [("decline", "declined"), ("cancel", "cancelled")])
async def test_a_form_is_left_in_either_way(tmp_path: Path, action: str, state: str) -> None:
    async with asked(tmp_path) as (office, question):
        left = await answer(office, id=question, action=action)
        late = await answer(office, id=question, rev=0, field="title", value="x")
        said = await result(office)

    assert (left[0], left[1]["state"]) == (200, state)
    assert (late[0], late[1]["code"], late[1]["decision"]) == (409, "already_resolved", action)
    assert said == f"got {action}: {{}}"


async def test_allowing_a_form_is_no_answer_and_denying_it_declines(tmp_path: Path) -> None:
    async with asked(tmp_path) as (office, question):
        path = f"/v1/approvals/{question}"
        async with exchange(office.path, "POST", path, {"decision": "allow-once"}) as said:
            allowed = said.status, dict(await said.json())
        async with exchange(office.path, "POST", path, {"decision": "deny"}) as said:
            denied = dict(await said.json())

    assert (allowed[0], allowed[1]["code"]) == (409, "not_answerable")
    assert (denied["resolved"], denied["decision"]) == (True, "decline")


async def test_a_confirmation_is_submitted_as_it_is(tmp_path: Path) -> None:
    async with asked(tmp_path, Form(message="Sure?")) as (office, question):
        sent = await answer(office, id=question, rev=0, action="submit")
        said = await result(office)

    assert sent[1]["state"] == "accepted"
    assert said == "got accept: {}"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "id is missing"),
        ({"id": "zzzz", "rev": 0}, "no question zzzz"),
        ({"rev": "0", "value": 1}, "rev must be a whole number"),
        ({"rev": 0}, "a value, skip or an action is needed"),
        ({"rev": 0, "action": "dance"}, "action must be one of"),
        ({"answers": {"title": "x"}}, "answers go with the action submit"),
        ({"answers": [1], "action": "submit"}, "answers must be an object"),
    ],
)
async def test_a_step_that_is_none_is_refused(
    tmp_path: Path, body: dict[str, Any], says: str
) -> None:
    async with asked(tmp_path) as (office, question):
        status, said = await answer(office, **({"id": question} | body if body else body))

    assert status in {400, 404}
    assert says in said["error"]
