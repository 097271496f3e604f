"""A person signs in by a code on another device (RFC 8628)."""

from pathlib import Path

import pytest

from tests.e2e.signing_in import configure, event_in, listed, signing_in
from tests.fakes.oauth.process import oauth_process
from tests.support.chat import hermes
from tests.support.requirement import requirement


@requirement("oauth.login.device", "design.oauth.login_json")
@pytest.mark.parametrize("command", ["login", "reauth"])
def test_a_program_reads_the_code_and_the_end(tmp_path: Path, command: str) -> None:
    with oauth_process(device=True, device_interval=1) as world:
        configure(tmp_path, world)
        options = ("--flow", "device", "--json")
        with signing_in(tmp_path, *options, command=(command, "s")) as running:
            shown = event_in(running)
            world.do("decide", user_code=shown["user_code"])
            done = event_in(running)
            assert running.wait() == 0

        assert shown["event"] == "device"
        assert shown["verification_uri"] == f"{world.issuer}/activate"
        assert done == {"event": "done", "server": "s", "ok": True}
        assert world.do("seen", path="/oauth/authorize") == []
        assert listed(tmp_path)["s"]["sign_in"] == "signed in"


@requirement("oauth.login.device")
def test_the_entry_chooses_the_device_and_a_person_reads_the_code(tmp_path: Path) -> None:
    with oauth_process(device=True, device_interval=1) as world:
        configure(tmp_path, world, flow="device")
        with signing_in(tmp_path, terminal=True) as running:
            running.expect(r"open this page on any device and enter the code:\n\S+/activate\n")
            code = running.expect(r"(\S+)\n").group(1)
            running.expect(r"With the code filled in: \S+user_code=\S+\n")
            running.expect(r"Waiting for it \(cancel gives up\):")
            running.say("what now?")
            running.expect("only cancel is understood")
            world.do("decide", user_code=code)
            running.expect("signed in to s")
            assert running.wait() == 0


@requirement("oauth.login.device")
def test_a_no_on_the_device_ends_with_one(tmp_path: Path) -> None:
    with oauth_process(device=True, device_interval=1) as world:
        configure(tmp_path, world)
        with signing_in(tmp_path, "--flow", "device", "--json") as running:
            world.do("decide", user_code=event_in(running)["user_code"], state="denied")
            done = event_in(running)
            assert running.wait() == 1

    assert (done["ok"], "the sign-in was refused" in done["error"]) == (False, True)


@requirement("oauth.login.device")
@pytest.mark.parametrize("command", ["login", "reauth"])
def test_a_server_that_knows_no_codes_is_one_with_the_reason(tmp_path: Path, command: str) -> None:
    with oauth_process() as world:
        configure(tmp_path, world)

        done = hermes(tmp_path, "mcp", command, "s", "--flow", "device")

        assert done.returncode == 1
        assert "no token stored: it offers no sign-in by device code" in done.stderr
