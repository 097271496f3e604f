import json
from typing import Any

import pytest

from gateway.domain.canonical import CanonicalJson
from gateway.domain.model import FunctionCall
from gateway.domain.operations.turns import StepState
from gateway.domain.tools import CallState
from gateway.runtime.config import ToolSearchConfig
from gateway.runtime.journal_text import Answer
from gateway.runtime.steps import Plan, Step
from gateway.runtime.toolbox import MAX_STEPS_PER_ROUND, Toolbox, joined
from tests.fakes.model import calls
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement


def toolbox(host: FakeTools, *, enabled: bool = True, asks_person: bool = False) -> Toolbox:
    return Toolbox(host=host, config=ToolSearchConfig(enabled=enabled), asks_person=asks_person)


def notes() -> FakeTools:
    return FakeTools(specs=[tool("list_notes", read_only=True), tool("add_note")])


def names(box: Toolbox) -> list[str]:
    return [spec.name for spec in box.functions()]


def answered(plan: Plan) -> Answer:
    assert plan.answer is not None
    return plan.answer


def found(plan: Plan) -> Any:
    return json.loads(answered(plan).text)


@requirement("tool_search.deferred")
def test_mcp_tools_are_offered_only_through_search_describe_and_call() -> None:
    assert names(toolbox(notes())) == ["tool_search", "tool_describe", "tool_call"]
    assert names(toolbox(FakeTools())) == []


@requirement("tool_search.disabled")
def test_with_search_switched_off_every_tool_is_a_function_of_its_own() -> None:
    box = toolbox(notes(), enabled=False)

    assert names(box) == ["mcp__demo__list_notes", "mcp__demo__add_note"]
    assert all(spec.parameters["type"] == "object" for spec in box.functions())


@requirement("tool_search.disabled")
def test_a_malformed_schema_costs_its_tool_and_one_warning_not_the_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad: dict[str, dict[str, object]] = {
        "typo": {"type": "object", "properties": {"a": {"type": "strnig"}}},
        "listed": {"type": "object", "properties": ["a"]},
        "array": {"type": "array", "items": {"type": "string"}},
        "required": {"type": "object", "required": "a"},
    }
    host = notes()
    host.add(tool("bare", schema={}))
    host.add(tool("nullable", schema={"type": ["object", "null"]}))
    for name, schema in bad.items():
        host.add(tool(name, schema=schema))
    box = toolbox(host, enabled=False)
    offered = [names(box) for _ in range(2)]

    fine = ("list_notes", "add_note", "bare", "nullable")
    assert offered == [[f"mcp__demo__{name}" for name in fine]] * 2
    told = [record.message for record in caplog.records]
    assert len(told) == len(bad)
    assert told[0] == (
        "tool mcp__demo__typo is not offered to the model: "
        "its schema is malformed at properties.a.type"
    )


def test_a_tool_that_becomes_available_is_offered_in_the_next_request() -> None:
    host = notes()
    box = toolbox(host, enabled=False)
    host.add(tool("late"))

    assert "mcp__demo__late" in names(box)


def test_only_guided_mode_can_ask_a_person() -> None:
    assert "ask_choice" in names(toolbox(FakeTools(), asks_person=True))

    (plan,) = toolbox(notes()).plan(calls(("ask_choice", {"options": []})).calls)

    assert answered(plan).state is CallState.ERROR


def test_a_search_names_the_tools_it_finds_and_the_servers_still_connecting() -> None:
    host = notes()
    host.connecting.append("slow")

    (plan,) = toolbox(host).plan(calls(("tool_search", {"queries": ["add"]})).calls)

    assert found(plan) == {
        "results": [
            {
                "query": "add",
                "tools": [
                    {
                        "name": "mcp__demo__add_note",
                        "server": "demo",
                        "title": "Add_note",
                        "description": "What add_note does.",
                    }
                ],
            }
        ],
        "connecting": ["slow"],
    }


@requirement("tool_search.bounds")
def test_a_search_gives_five_results_unless_told_and_never_more_than_25() -> None:
    host = FakeTools(specs=[tool(f"note{n}") for n in range(40)])

    def count(**arguments: object) -> int:
        asked = calls(("tool_search", {"queries": ["note", "does"], **arguments}))
        results = found(toolbox(host).plan(asked.calls)[0])["results"]
        assert len(results) == 2
        return len(results[0]["tools"])

    assert count() == 5
    assert count(limit=9) == 9
    assert count(limit=1000) == 25


def test_describing_gives_the_parameters_and_says_what_is_unknown() -> None:
    asked = calls(("tool_describe", {"names": ["mcp__demo__add_note", "nothing"]}))

    described = found(toolbox(notes()).plan(asked.calls)[0])

    assert [item["name"] for item in described["tools"]] == ["mcp__demo__add_note"]
    assert described["tools"][0]["read_only"] is False
    assert described["unknown"] == ["nothing"]


def test_an_unknown_tool_is_told_with_the_way_to_find_the_right_one() -> None:
    (asked,) = calls(("tool_call", {"calls": [{"name": "nothing"}]})).calls

    for_model = answered(toolbox(notes()).plan([asked])[0]).text
    for_person = answered(toolbox(notes(), asks_person=True).plan([asked])[0]).text

    assert "tool_search" in for_model
    assert for_person == "There is no tool nothing. /tools lists them."


def test_a_batch_becomes_one_step_for_each_call() -> None:
    batch: list[object] = [
        {"name": "mcp__demo__list_notes"},
        {"name": "nothing"},
        {"name": "mcp__demo__add_note", "arguments": '{"text":"x"}'},
        {"name": "mcp__demo__add_note", "arguments": [1]},
    ]
    asked = calls(("tool_call", {"calls": batch}))

    first, second, third, fourth = toolbox(notes()).plan(asked.calls)

    assert (first.server, first.tool, first.repeatable) == ("demo", "list_notes", True)
    assert "no tool nothing" in answered(second).text
    assert (third.tool, third.arguments, third.repeatable) == ("add_note", '{"text":"x"}', False)
    assert answered(fourth).state is CallState.ERROR
    assert {plan.call_id for plan in (first, second, third, fourth)} == {"c0"}


@requirement("fault.f35")
def test_arguments_that_are_no_json_object_are_answered_as_an_error() -> None:
    broken = FunctionCall(
        id="c", name="tool_call", arguments=CanonicalJson("{}"), problem="line 1: not JSON"
    )

    (plan,) = toolbox(notes()).plan([broken])

    assert answered(plan).state is CallState.ERROR
    assert "line 1: not JSON" in answered(plan).text


def test_a_model_that_calls_without_end_gets_errors_beyond_the_bound() -> None:
    many = [("mcp__demo__add_note", {"n": n}) for n in range(MAX_STEPS_PER_ROUND + 5)]
    asked = calls(*many)

    plans = toolbox(notes()).plan(asked.calls)

    assert len(plans) == MAX_STEPS_PER_ROUND + 5
    assert sum(plan.answer is None for plan in plans) == MAX_STEPS_PER_ROUND


def test_one_answer_is_its_text_and_several_are_joined_as_json() -> None:
    call = calls(("tool_call", {})).calls[0]
    ok = Answer(name="mcp__demo__a", state=CallState.OK, text="fine")
    no = Answer(name="mcp__demo__b", state=CallState.REFUSED, text="denied")

    one = joined(call, [_step(1, no)])
    two = joined(call, [_step(1, ok), _step(2, no)])

    assert (one.text, one.failed) == ("denied", True)
    assert json.loads(two.text) == [
        {"name": "mcp__demo__a", "state": "ok", "text": "fine"},
        {"name": "mcp__demo__b", "state": "refused", "text": "denied"},
    ]
    assert not two.failed


def _step(n: int, answer: Answer) -> Step:
    return Step(
        n=n,
        call_id="c0",
        server="demo",
        tool="x",
        tool_def_sha="",
        arguments=CanonicalJson("{}"),
        repeatable=False,
        state=StepState.OK,
        answer=answer,
    )
