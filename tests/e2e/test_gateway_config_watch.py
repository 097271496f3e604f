"""What a person does to the configuration of a running service, through real processes."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from gateway.control.client import SocketClient
from tests.e2e.house import House
from tests.support.chat import environment
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

APPLIED_SECONDS: Final = 2.0


def servers(house: House) -> Mapping[str, Mapping[str, Any]]:
    """Return what the running gateway says of its servers."""
    client = SocketClient.of(house.path, environ=environment(house.path))
    status = asyncio.run(client.status())
    return {item["name"]: item for item in status["mcp_servers"]}


def are_ready(house: House, *names: str) -> bool:
    found = servers(house)
    return set(found) == set(names) and all(item["state"] == "ready" for item in found.values())


def starts(house: House, name: str) -> list[str]:
    return house.lines(f"starts-{name}")


def serve(house: House, name: str, **keys: Any) -> None:
    """Add a server whose starts are counted for itself."""
    counted = ("--starts", str(house.file(f"starts-{name}")))
    house.serve(*counted, name=name, **{"trust": "full", **keys})


@requirement("mcp.watch.two_seconds", "case.sc1")
def test_an_edited_server_is_connected_changed_and_ended_alone_and_at_once(house: House) -> None:
    serve(house, "one")
    house.configure()
    took: list[float] = []

    def edit(*expected: str, what: str, said: str) -> None:
        house.configure()
        began = time.monotonic()
        eventually(lambda: said in house.log, what=what)
        eventually(lambda: are_ready(house, *expected), what=what)
        took.append(time.monotonic() - began)

    with Gateway(house.path) as gateway:
        eventually(lambda: are_ready(house, "one"), what="the first server")
        serve(house, "two")
        edit("one", "two", what="an added server", said="added two")
        serve(house, "two", timeout=17)
        edit("one", "two", what="a changed server", said="changed two")
        del house.servers["two"]
        edit("one", what="a removed server", said="removed two")
        serve(house, "one", enabled=False)
        house.configure()
        eventually(lambda: servers(house)["one"]["state"] == "disabled", what="a disabled server")
        assert gateway.end() == 0
    assert len(starts(house, "one")) == 1
    assert len(starts(house, "two")) == 2
    # What else goes on on the machine may hold one of them up.
    assert min(took) <= APPLIED_SECONDS, took


@requirement("mcp.watch.env")
def test_a_changed_variable_reconnects_only_the_server_that_uses_it(house: House) -> None:
    variables = house.path / ".env"
    variables.write_text("TOKEN=one\nOTHER=x\n")
    serve(house, "user", env={"TOKEN": "${TOKEN}"})
    serve(house, "stranger")
    house.configure()
    with Gateway(house.path) as gateway:
        eventually(lambda: are_ready(house, "user", "stranger"), what="both servers")
        variables.write_text("TOKEN=two\nOTHER=x\n")
        eventually(lambda: "changed user" in house.log, what="a changed variable")
        eventually(lambda: len(starts(house, "user")) == 2, what="a new start")
        variables.write_text("TOKEN=two\nOTHER=y\n")
        serve(house, "stranger", timeout=11)
        house.configure()
        eventually(lambda: "changed stranger" in house.log, what="the next change")
        eventually(lambda: are_ready(house, "user", "stranger"), what="both servers again")
        assert gateway.end() == 0
    assert len(starts(house, "user")) == 2


@requirement("fault.f37")
def test_a_broken_file_changes_nothing_and_each_is_told_once(house: House) -> None:
    file = house.path / "config.yaml"
    broken = ("mcp_servers: {box: {comm", "", "mcp_servers: [1, 2]\n", "a: \0\n", None)

    def told() -> list[str]:
        return [line for line in house.log.splitlines() if "configuration: " in line]

    with Gateway(house.path) as gateway:
        for number, text in enumerate(broken, 1):
            serve(house, "box", tools={"policy": {"write": "deny"}}, timeout=number)
            house.configure()
            eventually(lambda n=number: len(starts(house, "box")) == n, what="the whole file")
            eventually(lambda: are_ready(house, "box"), what="the server")
            if text is None:
                file.unlink()
            else:
                file.write_text(text)
            eventually(lambda n=number: len(told()) == n, what="a line about the file")
            assert are_ready(house, "box")
        assert gateway.end() == 0
    assert len(told()) == len(broken)
    assert len(starts(house, "box")) == len(broken)


def test_with_the_watch_off_only_a_reload_applies_a_change(house: House) -> None:
    house.configure(mcp={"watch": False})
    client = SocketClient.of(house.path, environ=environment(house.path))
    with Gateway(house.path) as gateway:
        serve(house, "late")
        house.configure(mcp={"watch": False})
        assert servers(house) == {}
        assert asyncio.run(client.reload())["added"] == ["late"]
        assert gateway.end() == 0
