"""`hermes mcp login` as a process, and the browser of the person who runs it."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx

from tests.fakes.oauth.process import OAuthProcess
from tests.support.chat import Chat, hermes

LINK: Final = r"(http://\S+/oauth/authorize\?\S+)\n"
PROMPT: Final = r"Or paste the redirect URL here… \(cancel gives up\):"

SSH: Final = {"SSH_CONNECTION": "192.0.2.7 50000 192.0.2.9 22", "USER": "me"}
"""A person whose terminal is on another machine."""


def configure(home: Path, *worlds: OAuthProcess, **oauth: object) -> None:
    """Write one entry for each world: `s`, `s2`, …"""
    names = [f"s{number if number > 1 else ''}" for number in range(1, len(worlds) + 1)]
    entries = {
        name: {"url": world.url, "auth": "oauth", "oauth": oauth}
        for name, world in zip(names, worlds, strict=True)
    }
    (home / "config.yaml").write_text(json.dumps({"mcp_servers": entries}))


def signing_in(
    home: Path,
    *options: str,
    command: tuple[str, ...] = ("login", "s"),
    terminal: bool = False,
    env: Mapping[str, str] | None = None,
) -> Chat:
    """Start the command."""
    return Chat(home, args=("mcp", *command, *options), terminal=terminal, env=env)


def link_in(running: Chat) -> str:
    """Return the page that the person is to open."""
    return running.expect(LINK).group(1)


def event_in(running: Chat) -> dict[str, Any]:
    """Return the next line of JSON."""
    found: dict[str, Any] = json.loads(running.expect(r"(\{.*?\})\n").group(1))
    return found


def come_back(redirect: str) -> httpx.Response:
    """Go where the browser is sent."""
    with httpx.Client(trust_env=False) as browser:
        return browser.get(redirect)


def listed(home: Path) -> dict[str, dict[str, Any]]:
    """Return what `hermes mcp list --json` says, by server."""
    done = hermes(home, "mcp", "list", "--json")
    return {row["name"]: row for row in json.loads(done.stdout)["servers"]}


def sign_in(home: Path, world: OAuthProcess, *, name: str = "s") -> None:
    """Sign in, as somebody did before the test."""
    with signing_in(home, "--json", command=("login", name)) as running:
        come_back(world.do("approve", url=event_in(running)["url"]))
        assert event_in(running)["ok"]
        assert running.wait() == 0


def tokens(home: Path, name: str = "s") -> dict[str, Any]:
    """Return what a server's token file holds."""
    found: dict[str, Any] = json.loads((home / "mcp-tokens" / f"{name}.json").read_text())
    return found


def free_port() -> int:
    """Return a port that nobody has now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
