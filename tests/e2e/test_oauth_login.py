"""A person signs in to a server from a shell: at a terminal, on a pipe, and by a program."""

import stat
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.e2e.signing_in import (
    PROMPT,
    SSH,
    come_back,
    configure,
    event_in,
    free_port,
    link_in,
    listed,
    sign_in,
    signing_in,
    tokens,
)
from tests.fakes.oauth.process import oauth_process
from tests.support.chat import hermes
from tests.support.requirement import requirement


@requirement("design.oauth.login_json", "oauth.login.paste_back")
def test_a_program_reads_the_link_and_the_end_as_lines_of_json(tmp_path: Path) -> None:
    with oauth_process() as world:
        configure(tmp_path, world)
        with signing_in(tmp_path, "--no-browser", "--json") as running:
            shown = event_in(running)
            page = come_back(world.do("approve", url=shown["url"]))
            done = event_in(running)
            code = running.wait()

        assert (shown["event"], page.status_code) == ("authorize", 200)
        assert parse_qs(urlsplit(str(shown["url"])).query)["redirect_uri"] == [
            shown["redirect_uri"]
        ]
        assert shown["redirect_uri"].startswith("http://127.0.0.1:")
        assert (done, code) == ({"event": "done", "server": "s", "ok": True}, 0)
        file = tmp_path / "mcp-tokens" / "s.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert len(world.token_posts("authorization_code")) == 1
        tested = hermes(tmp_path, "mcp", "call", "s", "echo", '{"text": "hi"}')
        assert tested.returncode == 0
        assert listed(tmp_path)["s"]["sign_in"] == "signed in"


@requirement("oauth.login.paste_back", "oauth.login.hints", "case.oa10")
def test_a_person_at_a_terminal_pastes_until_it_fits(tmp_path: Path) -> None:
    with oauth_process() as world:
        configure(tmp_path, world)
        with signing_in(tmp_path, terminal=True) as running:
            link = link_in(running)
            answer = world.do("approve", url=link)
            running.expect(PROMPT)
            running.say("what?")
            running.expect("that is no redirect of a sign-in: paste the whole URL, or cancel")
            running.expect(PROMPT)
            running.say(answer.replace("state=", "state=x"))
            running.expect(r"that belongs to another sign-in \(its state differs\)")
            running.expect(PROMPT)
            running.say(f"?{urlsplit(str(answer)).query}")
            running.expect(r"signed in to s: it lists \d+ tools and takes calls")
            assert running.wait() == 0
            assert running.seen.count("/oauth/authorize?") == 1

        assert len(world.do("seen", path="/oauth/register")) == 1
        assert tokens(tmp_path)["access_token"]


@requirement("oauth.login.paste_back")
def test_the_browser_comes_back_by_itself_while_a_terminal_asks(tmp_path: Path) -> None:
    with oauth_process() as world:
        configure(tmp_path, world)
        with signing_in(tmp_path, terminal=True) as running:
            link = link_in(running)
            running.expect(PROMPT)
            come_back(world.do("approve", url=link))
            running.expect("signed in to s")
            assert running.wait() == 0


@requirement("oauth.login.paste_back")
def test_a_redirect_longer_than_a_line_of_the_kernel_is_taken_whole(tmp_path: Path) -> None:
    with oauth_process() as world:
        configure(tmp_path, world)
        with signing_in(tmp_path, terminal=True) as running:
            answer = world.do("approve", url=link_in(running))
            running.expect(PROMPT)
            running.say(f"{answer}&session={'x' * 6_000}")
            running.expect("signed in to s")
            assert running.wait() == 0


@requirement("oauth.login.paste_back")
@pytest.mark.parametrize("terminal", [True, False])
def test_cancel_ends_with_one(tmp_path: Path, *, terminal: bool) -> None:
    with oauth_process() as world:
        configure(tmp_path, world)
        with signing_in(tmp_path, terminal=terminal) as running:
            link_in(running)
            if terminal:
                running.expect(PROMPT)
            running.say("cancel")
            assert running.wait() == 1
            said = "no token stored: the sign-in was cancelled"
            if terminal:
                running.expect(said)
            else:
                assert said in running.errors

        assert listed(tmp_path)["s"]["sign_in"] == "needs login"


@requirement("oauth.login.paste_back")
def test_ctrl_c_ends_the_wait(tmp_path: Path) -> None:
    with oauth_process() as world:
        configure(tmp_path, world)
        with signing_in(tmp_path, terminal=True) as running:
            link_in(running)
            running.expect(PROMPT)
            running.press("\x03")
            assert running.wait() == 130


@requirement("oauth.login.hints")
def test_over_ssh_the_forwarding_has_the_real_port(tmp_path: Path) -> None:
    with oauth_process() as world:
        configure(tmp_path, world)
        with signing_in(tmp_path, terminal=True, env=SSH) as running:
            link = link_in(running)
            forward = running.expect(r"ssh -N -L (\d+):127\.0\.0\.1:(\d+) me@192\.0\.2\.9\n")
            running.expect(PROMPT)
            come_back(world.do("approve", url=link))
            assert running.wait() == 0

    redirect = urlsplit(parse_qs(urlsplit(link).query)["redirect_uri"][0])
    assert forward.groups() == (str(redirect.port), str(redirect.port))


@requirement("oauth.login.hints")
def test_nobody_is_told_of_ssh_at_the_machine_itself(tmp_path: Path) -> None:
    with oauth_process() as world:
        configure(tmp_path, world)
        with signing_in(tmp_path) as running:
            come_back(world.do("approve", url=link_in(running)))
            assert running.wait() == 0
            assert "ssh" not in running.seen + running.errors
            assert "Or paste the redirect URL here…" in running.errors


@requirement("case.oa12")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_redirect_to_this_machine_is_awaited_where_it_says(tmp_path: Path, host: str) -> None:
    port = free_port()
    redirect = f"http://{host}:{port}/callback"
    with oauth_process() as world:
        configure(tmp_path, world, redirect_uri=redirect)
        with signing_in(tmp_path, "--json") as running:
            shown = event_in(running)
            answer = world.do("approve", url=shown["url"])
            assert shown["redirect_uri"] == redirect
            assert answer.startswith(f"{redirect}?")
            assert come_back(answer).status_code == 200
            assert event_in(running)["ok"]


@requirement("threat.s16")
def test_a_port_that_is_taken_is_told_with_the_remedy(tmp_path: Path) -> None:
    with oauth_process() as world:
        port = urlsplit(world.url).port
        configure(tmp_path, world, redirect_port=port)

        done = hermes(tmp_path, "mcp", "login", "s")

        assert done.returncode == 1
        assert f"port {port} (address already in use): free it, or set" in done.stderr


@requirement("oauth.logout_reauth")
def test_who_signs_out_has_no_tokens_and_who_signs_in_anew_has_others(tmp_path: Path) -> None:
    with oauth_process() as first, oauth_process() as second:
        configure(tmp_path, first, second)
        sign_in(tmp_path, first)
        before = tokens(tmp_path)["access_token"]

        with signing_in(tmp_path, "--all", "--json", command=("reauth",)) as running:
            for world in (first, second):
                come_back(world.do("approve", url=event_in(running)["url"]))
                assert event_in(running)["ok"]
            assert running.wait() == 0
        assert tokens(tmp_path)["access_token"] != before
        assert tokens(tmp_path, "s2")["issuer"] == second.issuer

        with signing_in(tmp_path, "--json", command=("reauth", "s2")) as running:
            come_back(second.do("approve", url=event_in(running)["url"]))
            assert running.wait() == 0

        gone = hermes(tmp_path, "mcp", "logout", "s")
        again = hermes(tmp_path, "mcp", "logout", "s")
        nobody = hermes(tmp_path, "mcp", "logout", "nobody")

    assert (gone.returncode, gone.stdout) == (0, "signed out of s\n")
    assert (again.returncode, again.stdout) == (0, "nobody was signed in to s\n")
    assert nobody.returncode == 3
    rows = listed(tmp_path)
    assert (rows["s"]["sign_in"], rows["s2"]["sign_in"]) == ("needs login", "signed in")
    assert (rows["s"]["auth"], rows["s2"]["auth"]) == ("oauth", "oauth")


@requirement("oauth.logout_reauth")
def test_a_sign_in_that_is_given_up_leaves_the_one_before(tmp_path: Path) -> None:
    with oauth_process() as world:
        configure(tmp_path, world)
        sign_in(tmp_path, world)
        before = tokens(tmp_path)
        with signing_in(tmp_path, command=("reauth", "s")) as running:
            link_in(running)
            running.say("cancel")
            assert running.wait() == 1
            assert "no new token stored, the one before is kept" in running.errors

    assert tokens(tmp_path) == before


def test_a_server_of_another_kind_or_name_is_no_login(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text('mcp_servers: {plain: {url: "http://127.0.0.1:9/"}}\n')

    plain = hermes(tmp_path, "mcp", "login", "plain")
    nobody = hermes(tmp_path, "mcp", "login", "nobody", "--json")

    assert plain.returncode == 1
    assert "its entry has no auth: oauth" in plain.stderr
    assert nobody.returncode == 3
    assert '"error": "is not configured"' in nobody.stdout
    for args in ((), ("plain", "--all")):
        assert hermes(tmp_path, "mcp", "reauth", *args).returncode == 2
    assert hermes(tmp_path, "mcp", "reauth", "--all").returncode == 1


def test_a_proxy_hands_the_redirect_on_to_the_port_that_the_entry_names(tmp_path: Path) -> None:
    port, public = free_port(), "https://gateway.example/oauth/back"
    with oauth_process() as world:
        configure(tmp_path, world, redirect_uri=public, redirect_port=port)
        with signing_in(tmp_path, "--json") as running:
            shown = event_in(running)
            assert shown["redirect_uri"] == public
            redirect = world.do("approve", url=shown["url"])
            assert redirect.startswith(f"{public}?")
            with httpx.Client(trust_env=False) as proxy:
                proxy.get(
                    redirect.replace("https://gateway.example", f"http://127.0.0.1:{port}"),
                    headers={"host": "gateway.example"},
                ).raise_for_status()
            assert event_in(running)["ok"]
            assert running.wait() == 0
