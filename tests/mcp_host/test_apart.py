"""Questions of servers that do not say whose they are: each reaches its own chat, or nobody."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.form import FormAction, FormAnswer
from gateway.domain.tools import CallState, ToolResult
from gateway.runtime.server_replies import server_detail
from mcp_host.server_config import ServerConfig
from tests.fakes.mcp.sdk_server import serve_http
from tests.mcp_host.hosting import (
    SERVERS,
    Person,
    Running,
    arguments,
    is_alive,
    legacy,
    lines_of,
    running,
)
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

Reach = Any


def by_command(starts: Path, **fields: Any) -> ServerConfig:
    """An entry that starts the SDK's server."""
    args = [str(SERVERS / "sdk_server.py"), str(starts)]
    return ServerConfig.model_validate({"command": sys.executable, "args": args, **fields})


@asynccontextmanager
async def stdio(starts: Path, **fields: Any) -> AsyncGenerator[ServerConfig]:
    yield by_command(starts, **fields)


@asynccontextmanager
async def http(starts: Path, **fields: Any) -> AsyncGenerator[ServerConfig]:
    del starts
    async with serve_http() as url:
        yield ServerConfig.model_validate({"url": url, **fields})


def answering(word: str, text: str = "x") -> Person:
    """A person who gives that word when asked for one."""
    form = FormAnswer(action=FormAction.ACCEPT, content={"word": word})
    return Person(arguments(text), form=form)


def holding(word: str, text: str) -> Person:
    """The same, who thinks until told to decide."""
    person = answering(word, text)
    person.decides.clear()
    return person


async def asks_once(host: Running) -> None:
    """Let the server ask where only one chat can be meant."""
    assert (await host.call("ask", person=answering("first"))).text == "x: first"


def shown(person: Person) -> list[str]:
    return [request.form.message for request in person.forms]


def begin(
    host: Running, person: Person, *, chat: str, platform: str = "telegram", tool: str = "ask"
) -> asyncio.Task[ToolResult]:
    return asyncio.create_task(host.call(tool, chat=chat, platform=platform, person=person))


@requirement("elicitation.legacy_separation", "case.el4")
@pytest.mark.parametrize("reach", [stdio, http])
async def test_two_chats_are_asked_at_once_each_its_own_question(
    reach: Reach, tmp_path: Path
) -> None:
    async with reach(tmp_path / "starts", max_connections=2) as entry, running(entry) as host:
        await asks_once(host)
        anna, ben = holding("tea", "anna"), holding("milk", "ben")
        # The same id on two platforms is two chats.
        calls = [begin(host, anna, chat="1"), begin(host, ben, chat="1", platform="slack")]
        await anna.asked.wait()
        await ben.asked.wait()
        detail = server_detail(host.status())
        ben.decides.set()
        first = await calls[1]
        anna.decides.set()
        results = [await calls[0], first]

    assert [shown(anna), shown(ben)] == [["A word for anna?"], ["A word for ben?"]]
    assert [result.text for result in results] == ["anna: tea", "ben: milk"]
    assert anna.told == ben.told == []
    assert "keep conversations apart: 2 of at most 2 connections open" in detail


@requirement("elicitation.legacy_separation")
@pytest.mark.parametrize("reach", [stdio, http])
async def test_without_another_connection_the_second_chat_waits_and_is_told(
    reach: Reach, tmp_path: Path
) -> None:
    async with reach(tmp_path / "starts", max_connections=1) as entry, running(entry) as host:
        await asks_once(host)
        anna, ben = holding("tea", "anna"), answering("milk", "ben")
        calls = [begin(host, anna, chat="1")]
        await anna.asked.wait()
        calls.append(begin(host, ben, chat="2"))
        await eventually_async(lambda: bool(ben.told))
        # It waits before it is written down as out.
        assert (ben.starts, ben.forms) == ([], [])
        anna.decides.set()
        results = [await call for call in calls]

    assert [result.text for result in results] == ["anna: tea", "ben: milk"]
    assert ben.told == [
        "s works for another chat and may ask there; this chat's call waits until it is done."
    ]
    assert anna.told == []


@requirement("elicitation.legacy_separation")
@pytest.mark.parametrize("reach", [stdio, http])
async def test_one_connection_of_the_newer_era_carries_the_questions_of_every_chat(
    reach: Reach, tmp_path: Path
) -> None:
    async with reach(tmp_path / "starts", protocol="stateless") as entry, running(entry) as host:
        await asks_once(host)
        people = {str(n): holding(f"word {n}", f"chat {n}") for n in range(5)}
        calls = [begin(host, person, chat=chat) for chat, person in people.items()]
        for person in people.values():
            await person.asked.wait()
        for person in reversed(people.values()):
            person.decides.set()
        results = [await call for call in calls]
        statistics = host.status().statistics

    assert [result.text for result in results] == [f"chat {n}: word {n}" for n in range(5)]
    assert [shown(person) for person in people.values()] == [
        [f"A word for chat {n}?"] for n in range(5)
    ]
    assert (statistics.connections, statistics.most_connections) == (1, 1)


@requirement("elicitation.never_wrong_chat")
@pytest.mark.parametrize("reach", [stdio, http])
async def test_the_first_question_that_may_be_anybodys_is_declined_and_the_next_ones_are_not(
    reach: Reach, tmp_path: Path
) -> None:
    async with reach(tmp_path / "starts", max_connections=2) as entry, running(entry) as host:
        people = {"anna": answering("tea", "anna"), "ben": answering("milk", "ben")}
        calls = [begin(host, person, chat=name) for name, person in people.items()]
        together = [await call for call in calls]
        calls = [begin(host, person, chat=name) for name, person in people.items()]
        apart = [await call for call in calls]

    declined = [result for result in together if "declined" in result.text]
    assert declined
    assert all("unclear whom to ask" in result.text for result in declined)
    for name, person in people.items():
        assert any("unclear whom to ask" in text for text in person.told)
        assert set(shown(person)) == {f"A word for {name}?"}
    assert [result.text for result in apart] == ["anna: tea", "ben: milk"]


@requirement("elicitation.legacy_separation")
async def test_a_server_that_asked_is_known_for_it_after_a_restart_and_a_change_of_its_entry(
    tmp_path: Path,
) -> None:
    cache, starts = tmp_path / "cache.json", tmp_path / "starts"
    async with running(by_command(starts), schema_cache=cache) as host:
        await asks_once(host)
    async with running(by_command(starts, max_connections=2), schema_cache=cache) as host:
        anna, ben = holding("tea", "anna"), holding("milk", "ben")
        calls = [begin(host, anna, chat="1"), begin(host, ben, chat="2")]
        for person in (anna, ben):
            await person.asked.wait()
            person.decides.set()
        known = [await call for call in calls]
        pids = [int(line) for line in lines_of(starts)]
    another = by_command(tmp_path / "others", max_connections=2)
    async with running(another, schema_cache=cache) as host:
        most = host.status().statistics.most_connections

    assert [result.text for result in known] == ["anna: tea", "ben: milk"]
    assert len(pids) == 3
    await eventually_async(lambda: not any(is_alive(pid) for pid in pids))
    assert most == 1


@requirement("elicitation.legacy_separation")
async def test_calls_of_one_chat_run_together_and_are_all_asked_there(tmp_path: Path) -> None:
    entry = by_command(tmp_path / "starts", supports_parallel_tool_calls=True)
    async with running(entry) as host:
        await asks_once(host)
        people = [holding("tea", "one"), holding("milk", "two")]
        calls = [begin(host, person, chat="1") for person in people]
        await eventually_async(lambda: sum(len(person.forms) for person in people) == 2)
        for person in people:
            person.decides.set()
        results = [await call for call in calls]

    asked = sorted(message for person in people for message in shown(person))
    assert asked == ["A word for one?", "A word for two?"]
    assert [result.state for result in results] == [CallState.OK] * 2
    assert {result.text.split(": ")[1] for result in results} <= {"tea", "milk"}


@requirement("elicitation.legacy_separation")
async def test_further_connections_end_with_their_entry_and_are_tried_anew_by_a_reload(
    tmp_path: Path,
) -> None:
    starts = tmp_path / "starts"
    async with running(by_command(starts, max_connections=3)) as host:
        await asks_once(host)

        async def fill() -> list[int]:
            before = len(lines_of(starts))
            people = {chat: holding("tea", chat) for chat in ("1", "2", "3")}
            calls = [begin(host, person, chat=chat) for chat, person in people.items()]
            for person in people.values():
                await person.asked.wait()
                person.decides.set()
            assert {(await call).state for call in calls} == {CallState.OK}
            return [int(line) for line in lines_of(starts)[max(0, before - 1) :]]

        first = await fill()
        assert all(is_alive(pid) for pid in first)
        await host.host.reload("s")
        await eventually_async(lambda: not any(is_alive(pid) for pid in first))
        second = await fill()
        del host.wanted["s"]
        await host.host.reload()
        await eventually_async(lambda: not any(is_alive(pid) for pid in second))

    assert (len(first), len(second)) == (3, 3)


@requirement("elicitation.legacy_separation")
async def test_a_chat_that_goes_away_while_it_waits_keeps_nobody_waiting(tmp_path: Path) -> None:
    async with running(by_command(tmp_path / "starts")) as host:
        await asks_once(host)
        anna = holding("tea", "anna")
        held = begin(host, anna, chat="1")
        await anna.asked.wait()
        gone = begin(host, answering("milk", "ben"), chat="2")
        waiting = begin(host, answering("rum", "carl"), chat="3")
        await asyncio.sleep(0)
        gone.cancel()
        held.cancel()
        result = await waiting
        await asyncio.wait({gone, held})

    # What was given up may still ask, so that nobody is asked on that connection.
    assert result.state is CallState.OK
    assert anna.withdrawn == 1


async def test_chats_of_a_server_that_never_asks_share_its_one_connection(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs, max_connections=4)) as host:
        files = [tmp_path / "a", tmp_path / "b"]
        calls = [
            begin(host, Person(arguments(str(file))), chat=file.name, tool="hold_write")
            for file in files
        ]
        await eventually_async(lambda: len(lines_of(runs)) == 2)
        open_now = host.status().statistics.connections
        for file in files:
            file.touch()
        for call in calls:
            assert (await call).text == "released"

    assert open_now == 1
