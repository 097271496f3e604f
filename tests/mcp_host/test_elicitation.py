from typing import Any

import pytest

from gateway.domain.form import FieldKind, FormAction, FormAnswer
from gateway.ports import FormRequest
from mcp_host.elicitation import Reply, content_problem, form_request, reply_to
from tests.support.requirement import requirement

HIDDEN = "\U000e0041\U000e0042"


def asks(properties: dict[str, object] | None = None, **more: object) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties or {}}
    return {"message": "May I?", "requestedSchema": schema, **more}


def request(params: dict[str, Any]) -> FormRequest:
    return form_request(server="notes", server_sha="sha", tool="plan_event", params=params)


def accept(params: dict[str, Any], **content: object) -> Reply:
    return reply_to(FormAnswer(action=FormAction.ACCEPT, content=content), params)


@requirement("elicitation.form.types")
def test_a_request_becomes_a_form_that_names_server_and_tool() -> None:
    found = request(asks({"day": {"type": "string", "format": "date"}}, mode="form"))

    assert (found.server, found.server_sha, found.tool) == ("notes", "sha", "plan_event")
    assert found.problem == ""
    assert found.form.message == "May I?"
    assert [field.kind for field in found.form.fields] == [FieldKind.DATE]


def test_a_request_without_a_schema_is_a_confirmation() -> None:
    assert request({"message": "Go on?"}).form.fields == ()


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        (asks({"x": {"type": "object"}}), 'the field "x" has the type object'),
        ({"mode": "url", "message": "m", "url": "https://x"}, "wants a link opened"),
        ({"mode": "else", "message": "m"}, "wants a link opened"),
        ({"message": "m", "requestedSchema": []}, "has no schema"),
        (asks({f"x{HIDDEN}": {"type": "string"}}), "hidden characters"),
        (asks({"x": {"type": "string", "enum": ["a", f"a{HIDDEN}"]}}), "hidden characters"),
        (asks({"x": {"type": "string", "default": f"a{HIDDEN}"}}), "hidden characters"),
    ],
)
def test_what_cannot_be_asked_comes_with_its_reason_and_without_fields(
    params: dict[str, Any], problem: str
) -> None:
    found = request(params)

    assert problem in found.problem
    assert found.form.fields == ()
    assert HIDDEN not in found.problem


@requirement("elicitation.url_mode")
@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://example.com/sign?state=1&x=%41#top", ""),
        ("http://127.0.0.1:8000/cb", ""),
        ("https://xn--80ak6aa92e.com/", ""),
        ("https://\u0430pple.com/", "letters no address has"),
        ("https://example.com/\u202e", "letters no address has"),
        ("https://bank.com@evil.example/", "hidden behind a user name"),
        ("https://bank.com\\@evil.example/", "letters no address has"),
        ("javascript:alert(1)", "no web address"),
        ("tg://user?id=1", "no web address"),
        ("file:///etc/passwd", "no web address"),
        ("https:///nowhere", "no web address"),
        ("https://[::1", "no link"),
        ("https://x:99999/", "no link"),
        ("https://example.com/ two", "letters no address has"),
        (f"https://example.com/{'x' * 2_000}", "longer than 2000"),
        ("", "without saying which"),
        (None, "without saying which"),
    ],
)
def test_only_a_link_whose_host_everybody_sees_is_asked_about(url: object, problem: str) -> None:
    params = {"mode": "url", "message": f"Sign{HIDDEN} in", "url": url}
    found = form_request(server="notes", server_sha="sha", tool="t", params=params, links=True)

    assert (found.form.message, found.form.fields) == ("Sign in", ())
    assert found.problem == "" if problem == "" else problem in found.problem
    assert reply_to(FormAnswer(action=FormAction.ACCEPT, content={}), params).as_result() == {
        "action": "accept"
    }


@requirement("threat.s28")
@pytest.mark.parametrize(
    "field",
    [
        {"password": {"type": "string"}},
        {"x": {"type": "string", "title": "Your API key"}},
        {"x": {"type": "string", "title": f"Pass{HIDDEN}word"}},
        {"x": {"type": "string", "format": "password"}},
        {"access_token": {"type": "string"}},
    ],
)
def test_a_form_that_asks_for_a_secret_is_refused(field: dict[str, object]) -> None:
    assert "secrets are never given in a chat" in request(asks(field)).problem


@requirement("threat.s11", "case.el12")
def test_texts_of_a_form_are_cleaned_and_capped() -> None:
    found = request(
        {
            "message": f"{HIDDEN}<!channel> {'m' * 6_000}",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "x": {
                        "type": "string",
                        "title": f"Ti{HIDDEN}tle",
                        "description": f"he{HIDDEN}lp",
                        "oneOf": [{"const": "a", "title": f"O{HIDDEN}ne"}],
                    }
                },
            },
        }
    )

    field = found.form.fields[0]
    assert found.form.message.startswith("<!channel> mmm")
    assert len(found.form.message) == 2_000
    assert (field.label, field.help, field.options[0].label) == ("Title", "help", "One")


@requirement("elicitation.form.types")
def test_a_valid_answer_goes_back_as_it_is() -> None:
    params = asks({"approved": {"type": "boolean"}})
    params["requestedSchema"]["required"] = ["approved"]

    assert accept(params, approved=True).as_result() == {
        "action": "accept",
        "content": {"approved": True},
    }
    assert accept(asks()).as_result() == {"action": "accept", "content": {}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({}, "the answer does not satisfy required"),
        ({"approved": "yes"}, "approved does not satisfy type"),
        ({"approved": None}, "approved does not satisfy type"),
        ({"approved": True, "day": "31.12."}, "day does not satisfy format"),
    ],
)
def test_an_answer_its_schema_refuses_is_declined_not_sent(
    content: dict[str, object], reason: str
) -> None:
    params = asks({"approved": {"type": "boolean"}, "day": {"type": "string", "format": "date"}})
    params["requestedSchema"]["required"] = ["approved"]

    reply = accept(params, **content)

    assert reply == Reply(action=FormAction.DECLINE, reason=reason)
    assert reply.as_result() == {"action": "decline"}


@pytest.mark.parametrize("action", [FormAction.DECLINE, FormAction.CANCEL])
def test_decline_and_cancel_stay_what_they_are_and_carry_no_content(action: FormAction) -> None:
    answer = FormAnswer(action=action, content={"x": 1}, reason="no")

    reply = reply_to(answer, asks())

    assert reply.as_result() == {"action": action.value}
    assert reply.reason == "no"


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "#/nowhere"},
        {"type": "nonsense"},
        {"properties": {"x": {"pattern": "["}}},
        [],
    ],
)
def test_a_schema_that_cannot_be_applied_is_a_problem_not_a_failure(schema: object) -> None:
    assert content_problem(schema, {"x": "y"}) is not None
