"""What people and shells see of the servers of a running gateway, through real processes."""

import json
from typing import Final

from tests.e2e.house import CARD, House
from tests.fakes.mcp import legacy_server
from tests.support.chat import hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

TOOLS: Final = len(legacy_server.TOOLS)


@requirement("mcp.lazy.shown", "mcp.lazy.cache")
def test_a_lazy_server_is_listed_with_its_tools_and_started_by_its_first_call(
    house: House,
) -> None:
    starts = house.file("starts")
    house.serve("--starts", str(starts), lazy=True)
    house.serve(name="gone", script="no_such_file.py")
    house.configure()
    with Gateway(house.path) as gateway:
        eventually(lambda: len(house.lines("starts")) == 1, what="the first start")
        eventually(lambda: "box: connecting -> ready" in house.log, what="its tools")
        assert gateway.end() == 0

    with Gateway(house.path) as gateway:
        eventually(lambda: "1 lazy, not spawned yet" in house.log, what="a word on the start")
        listed = hermes(house.path, "mcp", "list").stdout
        assert f"box lazy, {TOOLS} tools (lazy, starts on first use)" in listed
        with house.chat() as chat:
            chat.say("/mcp box")
            chat.expect(rf"lazy, {TOOLS} tools \(lazy, starts on first use\)")
            chat.expect(f"found {TOOLS}, registered {TOOLS}, filtered 0, collided 0")
            assert len(house.lines("starts")) == 1
            chat.say('call write {"text": "milk"}')
            chat.expect(f"box · write\n.*?{CARD}")
            # Nothing runs for a call that nobody allowed yet.
            assert len(house.lines("starts")) == 1
            chat.say("1")
            chat.expect("Got: 1")
            assert chat.end() == 0
        assert len(house.lines("starts")) == 2
        assert gateway.end() == 0


@requirement("case.sc2")
def test_a_server_that_is_added_is_offered_in_the_next_turn_of_a_live_session(
    house: House,
) -> None:
    house.configure()
    with Gateway(house.path) as gateway, house.chat() as chat:
        chat.say('call write {"text": "early"}')
        chat.expect("Got: .*no tool")
        house.serve(trust="full")
        house.configure()
        eventually(lambda: "box: connecting -> ready" in house.log, what="the added server")
        chat.say('call write {"text": "milk"}')
        chat.expect("Got: 1")
        assert house.runs == ["milk"]
        assert chat.end() == 0
        assert gateway.end() == 0


@requirement("mcp.parked.probes", "case.sc5")
def test_a_parked_server_comes_back_by_itself_and_the_heartbeat_goes_on(house: House) -> None:
    broken = house.file("broken")
    broken.touch()
    house.serve("--fail-while", str(broken))
    house.configure(mcp={"probe_interval": 1})
    with Gateway(house.path) as gateway:
        eventually(lambda: "connecting -> parked" in house.log, what="the parking")
        broken.unlink()
        eventually(lambda: "parked -> ready" in house.log, what="a probe")
        status = json.loads(hermes(house.path, "gateway", "status", "--json").stdout)
        assert status["mcp_servers"][0]["state"] == "ready"
        assert status["scheduler"]["heartbeat_age_s"] < 5
        assert gateway.end() == 0
