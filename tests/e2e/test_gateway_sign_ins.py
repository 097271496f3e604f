"""Sign-ins and a running gateway: parked without one, connected by one of another process."""

import time

from tests.e2e.house import House
from tests.e2e.signing_in import sign_in, tokens
from tests.fakes.oauth.process import oauth_process
from tests.support.chat import hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

READY = "box: connecting -> ready"
COMMAND = "hermes mcp login box"


@requirement("case.oa20", "fault.f40", "mcp.parked.probes")
def test_a_login_in_a_shell_connects_a_parked_server_within_two_seconds(house: House) -> None:
    with oauth_process() as world:
        house.servers["box"] = {"url": world.url, "auth": "oauth", "trust": "full"}
        house.configure()
        with Gateway(house.path) as gateway:
            eventually(lambda: COMMAND in house.log, what="the command for it")
            with house.chat() as chat:
                chat.say("/mcp box")
                chat.expect("needs login")

                sign_in(house.path, world, name="box")
                began = time.monotonic()
                eventually(lambda: "box: parked -> ready" in house.log, what="the server")
                assert time.monotonic() - began < 2

                chat.say('call echo {"text": "back"}')
                chat.expect("Got: back")
                assert chat.end() == 0
            assert gateway.end() == 0
        assert house.log.count(f"run `{COMMAND}`") == 1


@requirement("case.oa3", "case.oa20")
def test_a_restart_with_an_ended_token_renews_once_and_opens_nothing(house: House) -> None:
    with oauth_process() as world:
        house.servers["box"] = {"url": world.url, "auth": "oauth", "trust": "full"}
        house.configure()
        sign_in(house.path, world, name="box")
        world.do("expire")
        with Gateway(house.path) as gateway:
            # The login has connected once to see that it works.
            eventually(lambda: house.log.count(READY) == 2, what="the server")
            assert gateway.end() == 0

        assert len(world.token_posts("refresh_token")) == 1
        assert COMMAND not in house.log


@requirement("mcp.watch.in_process_chat")
def test_a_chat_of_its_own_process_parks_a_new_server_with_its_login_command(
    house: House,
) -> None:
    house.configure()
    with oauth_process() as world, house.chat() as chat:
        chat.say("hello")
        chat.expect("You said: hello")
        house.servers["box"] = {"url": world.url, "auth": "oauth"}
        house.configure()
        eventually(lambda: COMMAND in house.log, what="the parked server")
        chat.say("/mcp")
        chat.expect(r"needs login .*hermes mcp login box")
        assert chat.end() == 0


@requirement("case.cf1")
def test_every_way_to_a_server_sends_the_same_header_with_bearer_once(house: House) -> None:
    with oauth_process(open_methods=["initialize", "tools/list", "tools/call"]) as world:
        (house.path / ".env").write_text("TOKEN=t0ken-of-ours\n")
        entry = {"url": world.url, "headers": {"Authorization": "Bearer ${TOKEN}"}}
        house.servers["box"] = {**entry, "trust": "full"}
        house.configure()
        hermes(house.path, "mcp", "test", "box")
        hermes(house.path, "mcp", "call", "box", "echo", '{"text": "x"}', "--yes")
        with Gateway(house.path) as gateway:
            eventually(lambda: "box: connecting -> ready" in house.log, what="the server")
            house.servers["later"] = entry
            house.configure()
            eventually(lambda: "later: connecting -> ready" in house.log, what="the second")
            assert gateway.end() == 0

        sent = {seen["headers"].get("authorization") for seen in world.do("seen", path="/mcp")}
        assert sent == {"Bearer t0ken-of-ours"}


def test_a_gateway_that_ends_leaves_the_sign_in_as_it_was(house: House) -> None:
    with oauth_process() as world:
        house.servers["box"] = {"url": world.url, "auth": "oauth"}
        house.configure()
        sign_in(house.path, world, name="box")
        before = tokens(house.path, "box")
        with Gateway(house.path) as gateway:
            eventually(lambda: house.log.count(READY) == 2, what="the server")
            assert gateway.end() == 0

        assert tokens(house.path, "box") == before
