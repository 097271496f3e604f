"""The one way to a tool, through a host on real server processes."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from gateway.domain.canonical import CanonicalJson
from gateway.domain.errors import Conflict, Fenced, StoreBusy
from gateway.domain.ids import QuestionId
from gateway.domain.question import Action, Decision, QuestionState, Surface
from gateway.domain.tools import CallState, ServerState
from gateway.ports import Approval
from gateway.runtime.calls import answer_text
from gateway.runtime.clock import SystemClock
from mcp_host.config import parse_servers
from tests.mcp_host.hosting import (
    ALLOWED,
    Person,
    arguments,
    is_alive,
    legacy,
    lines_of,
    running,
)
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

DENIED = Decision(
    question=QuestionId("question"),
    state=QuestionState.DENIED,
    action=Action.DENY,
    by=None,
    via=Surface.BUTTON,
    at=SystemClock().now(),
)
WRITES = ("write", "write_quietly", "write_again", "write_bare")


# --- the gate ------------------------------------------------------------------------


@requirement("approval.gate", "case.ap4")
@pytest.mark.parametrize("tool", WRITES)
async def test_on_an_untrusted_server_whatever_is_not_read_only_waits_for_approval(
    tool: str, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    entry = legacy("--runs", runs)
    # A word nobody knows means untrusted.
    raw = {"command": entry.command, "args": list(entry.args), "trust": "Untrustd"}
    async with running(parse_servers({"s": raw}).servers) as host:
        person = Person(arguments("x"))
        person.decides.clear()
        call = asyncio.create_task(host.call(tool, "x", person=person))
        await person.asked.wait()
        assert lines_of(runs) == []
        assert person.starts == []
        person.decides.set()
        result = await call

    assert result.state is CallState.OK
    assert lines_of(runs) == ["x"]
    assert [spec.name for spec in person.approves] == [tool]
    assert person.starts == [ALLOWED.question]


@requirement("approval.gate")
async def test_on_an_untrusted_server_a_read_only_tool_runs_unasked() -> None:
    async with running(legacy(trust="untrusted")) as host:
        person = Person(arguments("x"))
        result = await host.call("echo", "x", person=person)

    assert result.text == "x"
    assert person.approves == []
    assert person.starts == [None]


@requirement("approval.gate", "case.ap4")
async def test_nothing_is_spawned_or_reconnected_before_the_approval(tmp_path: Path) -> None:
    runs, starts = tmp_path / "runs", tmp_path / "starts"
    clock = ManualClock()
    entry = legacy("--runs", runs, "--starts", starts, trust="untrusted")
    async with running(entry, clock=clock) as host:
        # The server is down, and its owner waits a second of a clock that stands.
        os.kill(int(lines_of(starts)[0]), signal.SIGKILL)
        await eventually_async(lambda: host.status().state is ServerState.CONNECTING)
        for approval in (Approval(allowed=False, reason="denied"), ALLOWED):
            person = Person(arguments("x"), approval=approval)
            person.decides.clear()
            call = asyncio.create_task(host.call("write", "x", person=person))
            await person.asked.wait()
            for _ in range(20):
                await asyncio.sleep(0.01)
            assert len(lines_of(starts)) == 1
            person.decides.set()
            result = await call
            assert len(lines_of(starts)) == (2 if approval.allowed else 1)

    assert result.state is CallState.OK
    assert lines_of(runs) == ["x"]


@requirement("approval.gate.never_runs_undecided")
@pytest.mark.parametrize(
    ("approval", "says"),
    [
        (Approval(allowed=False, reason="denied by Ann", decision=DENIED), "denied by Ann"),
        (Approval(allowed=False, reason="not run: no answer in 3 s"), "was not run: no answer in"),
        (Approval(allowed=False, reason="there is nowhere to ask"), "there is nowhere to ask"),
        (Approval(allowed=False), "it was not allowed"),
        (StoreBusy("disk full"), "the store cannot write"),
        (RuntimeError("boom"), "an error in the gateway itself"),
    ],
)
async def test_without_an_allowance_the_tool_never_runs_and_the_reason_is_told(
    approval: Approval | Exception, says: str, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs, trust="untrusted")) as host:
        person = Person(arguments("x"), approval=approval)
        result = await host.call("write", "x", person=person)

    assert result.state is CallState.REFUSED
    assert says.lower() in result.text.lower()
    assert "boom" not in result.text
    assert result.decision is (DENIED if "Ann" in says else None)
    assert person.starts == []
    assert lines_of(runs) == []


@requirement("approval.gate.never_runs_undecided")
async def test_a_cancelled_wait_for_approval_runs_nothing(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs, trust="untrusted")) as host:
        person = Person(arguments("x"))
        person.decides.clear()
        call = asyncio.create_task(host.call("write", "x", person=person))
        await person.asked.wait()
        call.cancel()
        await asyncio.wait({call})

    assert call.cancelled()
    assert person.withdrawn == 1
    assert lines_of(runs) == []


@requirement("approval.gate.never_runs_undecided")
async def test_an_approval_that_was_used_up_runs_nothing(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs, trust="untrusted")) as host:
        person = Person(arguments("x"), starting=Conflict("the approval was used"))
        result = await host.call("write", "x", person=person)

    assert result.state is CallState.REFUSED
    assert lines_of(runs) == []


async def test_a_conversation_that_is_no_longer_ours_stops_without_a_word(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs, trust="untrusted")) as host:
        for person in (
            Person(arguments("x"), starting=Fenced(1, 2)),
            Person(arguments("x"), approval=Fenced(1, 2)),
            Person(arguments("x"), form=Fenced(1, 2)),
        ):
            with pytest.raises(Fenced):
                await host.call("order", "x", person=person)

    assert lines_of(runs) == ["order"]


async def test_the_arguments_that_run_are_those_of_the_row(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs, trust="untrusted")) as host:
        await host.call("write", "of the model", person=Person(arguments("of the row")))

    assert lines_of(runs) == ["of the row"]


async def test_arguments_travel_exactly() -> None:
    text = "\U0001f600 \ud800 \x00 \\ \" ' \u2028"
    async with running(legacy()) as host:
        result = await host.call("echo", text)

    assert result.text == text


@pytest.mark.parametrize("wrong", ["[1]", '"x"', "{", '{"a": NaN}', '{"a": 1, "a": 2}'])
async def test_arguments_that_are_no_object_run_nothing(wrong: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs)) as host:
        result = await host.call("write", person=Person(CanonicalJson(wrong)))

    assert result.state in {CallState.ERROR, CallState.REFUSED}
    assert "was not run" in result.text
    assert lines_of(runs) == []


@requirement("approval.policy")
async def test_the_policy_of_the_operator_comes_before_trust(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    policy = {"write": "allow", "write_*": "deny", "echo": "ask"}
    entry = legacy("--runs", runs, trust="untrusted", tools={"policy": policy})
    async with running(entry) as host:
        people = {tool: Person(arguments("x")) for tool in ("write", "write_again", "echo")}
        results = {
            tool: await host.call(tool, "x", person=person) for tool, person in people.items()
        }

    assert [result.state for result in results.values()] == [
        CallState.OK,
        CallState.REFUSED,
        CallState.OK,
    ]
    assert "policy" in results["write_again"].text
    assert [len(person.approves) for person in people.values()] == [0, 0, 1]
    assert people["write_again"].starts == []
    assert lines_of(runs) == ["x"]


async def test_a_tool_that_is_filtered_out_or_unknown_cannot_be_called(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    entry = legacy("--runs", runs, tools={"exclude": "write*"})
    async with running(entry) as host:
        results = [await host.call("write", "x"), await host.call("no_such\x1b_tool", "x")]

    assert [result.state for result in results] == [CallState.ERROR, CallState.ERROR]
    assert "no tool" in results[0].text
    assert lines_of(runs) == []


async def test_a_tool_that_changed_while_it_waited_is_not_run(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs, trust="untrusted")) as host:
        person = Person(arguments("x"))
        person.decides.clear()
        call = asyncio.create_task(host.call("write", "x", person=person))
        await person.asked.wait()
        host.wanted["s"] = legacy("--runs", runs, "--many", 1, trust="untrusted")
        await host.host.reload()
        person.decides.set()
        result = await call

    assert result.state is CallState.REFUSED
    assert "changed while it waited" in result.text
    assert lines_of(runs) == []


# --- what comes back -------------------------------------------------------------------


async def test_text_and_structured_content_and_files_all_arrive() -> None:
    async with running(legacy()) as host:
        result = await host.call("rich")

    assert result.state is CallState.OK
    assert result.structured == {"items": ["a", None, 12345678901234567890]}
    assert "1 item" in result.text
    assert "inside" in result.text
    assert "[image image/png, 5 bytes]" in result.text
    assert "demo://plan" in result.text
    assert "unknown type hologram" in result.text
    assert [(one.kind.value, one.media_type, one.size) for one in result.attachments] == [
        ("image", "image/png", 5),
        ("file", "application/octet-stream", 5),
    ]


@requirement("mcp.failure.never_parks_on_call")
async def test_an_error_of_the_tool_keeps_its_text_and_structured_content() -> None:
    async with running(legacy()) as host:
        result = await host.call("fail")

        assert host.status().state is ServerState.READY

    assert result.state is CallState.ERROR
    assert result.text == "1 problem"
    assert result.structured == {"problems": ["disk full"]}


@requirement("mcp.sanitize.meta")
async def test_reserved_metadata_does_not_arrive_and_none_is_left_out() -> None:
    async with running(legacy()) as host:
        result = await host.call("hidden")
        plain = await host.call("echo", "plain")

    (key,) = result.meta
    assert key.startswith("com.example/shown")
    assert "_meta: {" in answer_text(result)
    assert answer_text(plain) == "plain"


@requirement("case.ms13")
@pytest.mark.parametrize(
    ("tool", "says"),
    [
        ("refuse", "error -32602: text is missing"),
        ("needs_url", "needs a link opened"),
        ("malformed", "the answer was malformed"),
        ("too_long", "longer than 64 MiB"),
    ],
)
async def test_an_answer_that_is_no_result_is_a_readable_error_and_the_server_stays(
    tool: str, says: str
) -> None:
    async with running(legacy()) as host:
        result = await host.call(tool)
        again = await host.call("echo", "still here")

    assert result.state is CallState.ERROR
    assert says in result.text
    assert "\x1b" not in result.text
    assert again.text == "still here"


@pytest.mark.parametrize(
    ("tool", "text"), [("junk", "after junk"), ("bad_bytes", "a\ufffdb"), ("surrogate", "a\ud800b")]
)
async def test_garbage_does_not_end_a_call(tool: str, text: str) -> None:
    async with running(legacy()) as host:
        result = await host.call(tool)
        notes = host.status().notes

    assert result.text == text
    assert any("no messages" in note for note in notes) == (tool == "junk")


async def test_a_huge_result_is_cut_and_said() -> None:
    async with running(legacy()) as host:
        result = await host.call("huge", "20000000")

    assert result.state is CallState.OK
    assert len(result.text) < 1_000_200
    assert "cut: 20000000 characters" in result.text


async def test_the_time_of_a_call_leaves_out_what_people_took() -> None:
    async with running(legacy()) as host:
        person = Person(arguments("x"))
        person.decides.clear()
        call = asyncio.create_task(host.call("order", "x", person=person))
        await person.asked.wait()
        await asyncio.sleep(0.3)
        person.decides.set()
        result = await call
        slow = await host.call("slow", "0.2")

    assert result.ms < 250
    assert slow.ms >= 200


# --- what is lost, and what runs again ---------------------------------------------------


@requirement("mcp.retry_rule")
async def test_a_write_whose_answer_was_lost_is_unknown_and_never_runs_again(
    tmp_path: Path,
) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs)) as host:
        async with asyncio.timeout(10):
            result = await host.call("crash")

    assert result.state is CallState.UNKNOWN
    assert "exited with code 7: fatal: the disk is on fire" in result.text
    assert "may have run" in result.text
    assert lines_of(runs) == ["crash"]


@requirement("mcp.retry_rule")
async def test_a_read_whose_answer_was_lost_is_made_again_once(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs)) as host:
        result = await host.call("crash_once")

    assert result.text == "survived"
    assert lines_of(runs) == ["crash_once", "crash_once"]


@requirement("mcp.retry_rule")
async def test_a_call_that_was_never_sent_is_made_on_the_next_connection(tmp_path: Path) -> None:
    runs, starts = tmp_path / "runs", tmp_path / "starts"
    async with running(legacy("--runs", runs, "--starts", starts)) as host:
        os.kill(int(lines_of(starts)[0]), signal.SIGKILL)
        await eventually_async(lambda: host.status().state is ServerState.CONNECTING)
        result = await host.call("write", "once")

    assert result.text == "1"
    assert lines_of(runs) == ["once"]
    assert len(lines_of(starts)) == 2


@requirement("mcp.failure.never_parks_on_call")
async def test_a_write_that_timed_out_is_unknown_and_its_server_stays(tmp_path: Path) -> None:
    runs, cancelled = tmp_path / "runs", tmp_path / "cancelled"
    entry = legacy("--runs", runs, "--cancellations", cancelled, timeout=0.3)
    async with running(entry) as host:
        write = await host.call("hold_write", str(tmp_path / "never"))
        read = await host.call("never")
        await eventually_async(lambda: len(lines_of(cancelled)) == 2)
        echo = await host.call("echo", "still here")

        assert host.status().state is ServerState.READY

    assert write.state is CallState.UNKNOWN
    assert "no answer within 0.3 s" in write.text
    assert read.state is CallState.ERROR
    assert echo.text == "still here"
    assert lines_of(runs) == ["hold", "never"]


@requirement("mcp.parked.answers")
async def test_a_parked_server_answers_at_once_with_the_reason_and_the_next_try(
    tmp_path: Path,
) -> None:
    broken, starts = tmp_path / "broken", tmp_path / "starts"
    clock = ManualClock()
    entry = legacy("--fail-while", broken, "--starts", starts)
    async with running(entry, clock=clock) as host:
        broken.touch()
        os.kill(int(lines_of(starts)[0]), signal.SIGKILL)
        while host.status().state is not ServerState.PARKED:
            clock.advance(20)
            await asyncio.sleep(0.05)
        result = await host.call("write", "x")
        broken.unlink()
        await eventually_async(lambda: host.status().state is not ServerState.PARKED)

    assert result.state is CallState.ERROR
    assert "parked: server exited with code 3: cannot start: [31mno licence[0m found" in result.text
    assert "next try in" in result.text


# --- side by side -----------------------------------------------------------------------------


async def test_calls_of_different_conversations_run_side_by_side_on_one_connection(
    tmp_path: Path,
) -> None:
    go, starts = tmp_path / "go", tmp_path / "starts"
    async with running(legacy("--starts", starts)) as host:
        calls = [
            asyncio.create_task(host.call("hold", person=Person(arguments(str(go)))))
            for _ in range(4)
        ]
        quick = await host.call("echo", "quick")
        assert quick.text == "quick"
        go.touch()
        results = await asyncio.gather(*calls)

    assert {result.text for result in results} == {"released"}
    assert len(lines_of(starts)) == 1


async def test_a_cancelled_call_leaves_the_process_and_the_other_calls_alone(
    tmp_path: Path,
) -> None:
    starts, cancelled = tmp_path / "starts", tmp_path / "cancelled"
    entry = legacy("--starts", starts, "--cancellations", cancelled, "--runs", tmp_path / "runs")
    async with running(entry) as host:
        call = asyncio.create_task(host.call("never"))
        await eventually_async(lambda: lines_of(tmp_path / "runs") == ["never"])
        call.cancel()
        await asyncio.wait({call})
        await eventually_async(lambda: len(lines_of(cancelled)) == 1)

        assert is_alive(int(lines_of(starts)[0]))
        assert (await host.call("echo", "x")).text == "x"
