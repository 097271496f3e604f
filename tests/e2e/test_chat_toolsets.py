"""`hermes chat -t`: only some toolsets, in a process of its own and beside a running gateway."""

import time

import pytest

from gateway.app.terminal import ONE_QUESTION_WAIT
from tests.e2e.house import House, texts
from tests.support.chat import hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

WRITE = 'call write {"text": "milk"}'


@pytest.fixture
def home(house: House) -> House:
    """A home with two servers that anybody may use, and one that is off."""
    house.serve(trust="full")
    house.serve(name="other", trust="full")
    house.serve(name="off", enabled=False)
    house.configure()
    return house


@requirement("cli.chat.toolsets.narrowed", "cli.chat.toolsets.never_commands")
def test_only_the_named_toolsets_are_offered_and_the_rest_is_printed(home: House) -> None:
    with_box = hermes(home.path, "chat", "-t", "mcp-box", "-q", WRITE)
    assert (with_box.stdout, with_box.stderr) == ("Got: 1\n", "Left out: mcp-other.\n")

    without = hermes(home.path, "chat", "-t", "mcp-other", "-q", WRITE)
    assert "There is no tool mcp__box__write." in without.stdout
    assert without.stderr == "Left out: mcp-box.\n"
    assert home.runs == ["milk"]

    asked = home.model.requests(WRITE)[-1]
    assert {item["function"]["name"] for item in asked["tools"]} >= {"tool_search", "tool_call"}
    assert "- box" not in texts(asked, "system")[0]
    assert "/reload-mcp" in hermes(home.path, "chat", "-t", "mcp-other", "-q", "/help").stdout


@requirement("cli.chat.toolsets.narrowed")
def test_a_server_that_is_left_out_keeps_no_question_waiting(home: House) -> None:
    home.serve("--silent", "initialize", name="mute", connect_timeout=300)
    home.configure()
    began = time.monotonic()
    done = hermes(home.path, "chat", "-t", "mcp-box", "-q", WRITE)

    assert done.stdout == "Got: 1\n"
    # Servers of the turn itself would be waited for longer than that.
    assert time.monotonic() - began < ONE_QUESTION_WAIT


@requirement("cli.chat.toolsets.narrowed")
def test_a_toolset_that_is_not_there_is_a_usage_error(home: House) -> None:
    there = "there are: mcp-box, mcp-other"
    for names, says in {
        "mcp-box,mcp-of": f"there is no toolset mcp-of; {there}",
        "mcp-off": f"there is no toolset mcp-off; {there}",
        ",": "names no toolset",
    }.items():
        done = hermes(home.path, "chat", "-t", names, "-q", "x")
        assert done.returncode == 2
        assert says in done.stderr
        assert not done.stdout


@requirement("cli.chat.toolsets.narrowed")
def test_a_chat_beside_a_gateway_is_narrowed_too_and_no_other_chat_is(home: House) -> None:
    with Gateway(home.path) as gateway:
        eventually(lambda: "2 ok" in home.log, what="both servers")
        left = hermes(home.path, "chat", "-t", "mcp-other", "-q", WRITE)
        assert "There is no tool mcp__box__write." in left.stdout
        assert left.stderr == "Left out: mcp-box.\n"
        assert hermes(home.path, "chat", "-t", "mcp-nope", "-q", "x").returncode == 2
        assert hermes(home.path, "chat", "-q", WRITE).stdout == "Got: 1\n"
        assert gateway.end() == 0
