"""When a browser is opened, and that nothing else can: the person's is a program that takes notes."""

import ast
from pathlib import Path

import pytest

from tests.e2e.signing_in import (
    PROMPT,
    SSH,
    come_back,
    configure,
    event_in,
    link_in,
    listed,
    signing_in,
)
from tests.fakes.oauth.process import oauth_process
from tests.support.chat import ROOT, hermes
from tests.support.eventually import eventually
from tests.support.requirement import requirement

CODE = ("gateway", "adapters", "mcp_host", "store")
MAY_OPEN = {"gateway.cli.browser"}
"""Who can open one, and who asks for it."""
ASKS = {"gateway.cli.sign_in_person"}


class Browser:
    """A browser that opens nothing and writes down what it was given."""

    def __init__(self, folder: Path) -> None:
        self._notes = folder / "opened"
        program = folder / "browser"
        program.write_text(f'#!/bin/sh\necho "$1" >> "{self._notes}"\n')
        program.chmod(0o700)
        self.env = {"BROWSER": f"{program} %s"}

    @property
    def opened(self) -> list[str]:
        return self._notes.read_text().splitlines() if self._notes.exists() else []


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    return Browser(tmp_path)


@requirement("oauth.login.browser_only_there")
def test_a_login_at_a_terminal_opens_its_page_once(tmp_path: Path, browser: Browser) -> None:
    with oauth_process() as world:
        configure(tmp_path, world)
        for command in (("login", "s"), ("reauth", "s")):
            with signing_in(tmp_path, command=command, terminal=True, env=browser.env) as running:
                link = link_in(running)
                running.expect(r"It was opened in your browser\.")
                eventually(lambda: bool(browser.opened), what="the browser")
                assert browser.opened.pop(0) == link
                come_back(world.do("approve", url=link))
                assert running.wait() == 0
            (tmp_path / "opened").unlink()


@requirement("oauth.login.browser_only_there")
@pytest.mark.parametrize(
    ("options", "terminal"), [(("--no-browser",), True), ((), False), (("--json",), False)]
)
def test_without_a_terminal_or_a_wish_none_is_opened(
    tmp_path: Path, browser: Browser, options: tuple[str, ...], *, terminal: bool
) -> None:
    with oauth_process() as world:
        configure(tmp_path, world)
        with signing_in(tmp_path, *options, terminal=terminal, env=browser.env) as running:
            link = event_in(running)["url"] if "--json" in options else link_in(running)
            come_back(world.do("approve", url=link))
            assert running.wait() == 0
            assert "opened in your browser" not in running.seen + running.errors

    assert browser.opened == []


@requirement("oauth.login.browser_only_there", "oauth.login.hints")
def test_without_a_screen_or_over_ssh_there_is_no_browser(tmp_path: Path) -> None:
    with oauth_process() as world:
        configure(tmp_path, world)
        for env in ({}, {**SSH, "DISPLAY": ":0"}):
            with signing_in(tmp_path, terminal=True, env=env) as running:
                link = link_in(running)
                running.expect(PROMPT)
                come_back(world.do("approve", url=link))
                assert running.wait() == 0
                assert "opened in your browser" not in running.seen


@requirement("oauth.login.browser_only_there")
def test_a_server_added_at_a_terminal_is_signed_in_to(tmp_path: Path, browser: Browser) -> None:
    with oauth_process() as world:
        command = ("add", "s", "--url", world.url, "--auth", "oauth", "--yes")
        with signing_in(tmp_path, command=command, terminal=True, env=browser.env) as running:
            link = link_in(running)
            eventually(lambda: bool(browser.opened), what="the browser")
            come_back(world.do("approve", url=link))
            running.expect(r"added s to \S+: it works")
            assert running.wait() == 0

        assert browser.opened == [link]
        assert listed(tmp_path)["s"]["sign_in"] == "signed in"


@requirement("oauth.login.browser_only_there")
def test_a_server_added_at_a_terminal_stays_when_the_sign_in_is_given_up(tmp_path: Path) -> None:
    with oauth_process() as world:
        command = ("add", "s", "--url", world.url, "--auth", "oauth", "--yes")
        with signing_in(tmp_path, command=command, terminal=True) as running:
            link_in(running)
            running.expect(PROMPT)
            running.say("cancel")
            running.expect(r"added s to \S+: sign in with: hermes mcp login s")
            assert running.wait() == 0

    assert listed(tmp_path)["s"]["sign_in"] == "needs login"


@requirement("oauth.login.browser_only_there")
def test_a_server_added_without_a_terminal_says_how_to_sign_in(
    tmp_path: Path, browser: Browser
) -> None:
    with oauth_process() as world:
        options = ("--url", world.url, "--auth", "oauth")
        done = hermes(tmp_path, "mcp", "add", "s", *options, env=browser.env)
        for command in (("test", "s"), ("list",), ("call", "s", "echo", "{}")):
            hermes(tmp_path, "mcp", *command, env=browser.env)

        assert done.returncode == 0
        assert "run `hermes mcp login s`" in done.stderr
        assert world.do("seen", path="/oauth/authorize") == []
    assert browser.opened == []


@requirement("oauth.login.browser_only_there")
def test_one_file_can_open_a_browser_and_one_asks_it_to() -> None:
    opens: set[str] = set()
    asks: set[str] = set()
    for package in CODE:
        for path in (ROOT / package).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            text = path.read_text(encoding="utf-8")
            if "webbrowser" in text or "xdg-open" in text:
                opens.add(module)
            if MAY_OPEN & set(_imported(ast.parse(text))):
                asks.add(module)
    assert opens == MAY_OPEN
    assert asks == ASKS


def _imported(tree: ast.Module) -> list[str]:
    """Return every module that a file imports, at its top or later."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found += [node.module or "", *(f"{node.module}.{name.name}" for name in node.names)]
        elif isinstance(node, ast.Import):
            found += [name.name for name in node.names]
    return found
