"""A login counts when there is a token and a call with it works: a list that anybody gets is neither."""

from pathlib import Path

import pytest

from tests.e2e.signing_in import come_back, configure, event_in, listed, signing_in
from tests.fakes.oauth.process import oauth_process
from tests.support.chat import hermes
from tests.support.requirement import requirement

OPEN = ["server/discover", "initialize", "notifications/initialized", "tools/list", "ping"]


@requirement("case.oa13")
@pytest.mark.parametrize("registration", ["refused", "unknown"])
def test_a_server_that_lists_to_anybody_and_registers_nobody_is_no_login(
    tmp_path: Path, registration: str
) -> None:
    with oauth_process(open_methods=OPEN, registration=registration) as world:
        configure(tmp_path, world)

        done = hermes(tmp_path, "mcp", "login", "s")

        assert done.returncode == 1
        assert "no token stored: " in done.stderr
        assert "register a client there and set oauth.client_id" in done.stderr
        assert not (tmp_path / "mcp-tokens" / "s.json").exists()


@requirement("case.oa13")
def test_a_server_that_challenges_nobody_is_signed_in_to_all_the_same(tmp_path: Path) -> None:
    with oauth_process(open_methods=OPEN, challenges=False) as world:
        configure(tmp_path, world)
        with signing_in(tmp_path, "--json") as running:
            come_back(world.do("approve", url=event_in(running)["url"]))
            assert event_in(running)["ok"]
            assert running.wait() == 0

        called = hermes(tmp_path, "mcp", "call", "s", "echo", '{"text": "hi"}')
        assert called.returncode == 0
        assert world.do("status")["calls"][-1] == "hi"


@requirement("case.oa13")
def test_a_token_that_no_call_is_let_by_with_ends_with_one_and_says_what_to_do(
    tmp_path: Path,
) -> None:
    with oauth_process(open_methods=OPEN, access_seconds=0) as world:
        configure(tmp_path, world)
        with signing_in(tmp_path, "--json") as running:
            come_back(world.do("approve", url=event_in(running)["url"]))
            done = event_in(running)
            assert running.wait() == 1

        assert "a token is stored, and a call with it does not work" in done["error"]
        assert "set oauth.client_id" in done["error"]
        assert world.do("status")["calls"] == []


@requirement("case.oa13")
def test_a_client_of_ones_own_signs_in_where_nobody_registers(tmp_path: Path) -> None:
    mine = {"client_id": "mine", "secret": "canary", "method": "client_secret_post"}
    with oauth_process(open_methods=OPEN, registration="refused", clients=[mine]) as world:
        method = {"token_endpoint_auth_method": "client_secret_post"}
        configure(tmp_path, world, client_id="mine", client_secret="canary", **method)
        with signing_in(tmp_path, "--json") as running:
            come_back(world.do("approve", url=event_in(running)["url"]))
            assert event_in(running)["ok"]
            assert running.wait() == 0

        assert world.do("seen", path="/oauth/register") == []
        assert listed(tmp_path)["s"]["sign_in"] == "signed in"
    for path in (tmp_path / "mcp-tokens" / "s.json", tmp_path / "logs" / "gateway.log"):
        assert "canary" not in path.read_text()
