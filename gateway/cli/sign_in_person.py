"""Who signs in at a shell: a person who reads and pastes, or a program that reads lines of JSON."""

import getpass
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from gateway.cli.browser import has_browser, is_far_away, open_page
from gateway.cli.output import print_data, print_json_line, say

if TYPE_CHECKING:
    from gateway.cli.typed_lines import Lines
    from gateway.ports.signing_in import DeviceCode, SignInLink

PASTE: Final = "Or paste the redirect URL here… (cancel gives up): "
CANCEL: Final = "Waiting for it (cancel gives up): "
_SSH_PORT: Final = "22"


class ShellPerson:
    """Implements `Person` for people. `opens`: a page may be opened in a browser."""

    def __init__(
        self, server: str, lines: "Lines", *, environ: Mapping[str, str], opens: bool
    ) -> None:
        self._server = server
        self._lines = lines
        self._environ = environ
        self._opens = opens
        self._prompt = PASTE

    async def show_link(self, link: "SignInLink") -> None:
        """Show the page, open it where that helps, and say how a browser elsewhere gets back."""
        say(f"To sign in to {self._server}, open this page in a browser:")
        print_data(link.url)
        if self._opens and has_browser(self._environ) and await open_page(link.url, self._environ):
            say("It was opened in your browser.")
        if link.port is not None and is_far_away(self._environ):
            say("When that browser is on another machine, run this there first:")
            say(f"  {forward(link.port, self._environ)}")
        if not self._lines.asks:
            say(PASTE)

    async def show_code(self, code: "DeviceCode") -> None:
        """Show the page and the code; nothing is opened, since the page may be on any device."""
        say(f"To sign in to {self._server}, open this page on any device and enter the code:")
        print_data(code.url)
        print_data(code.user_code)
        if code.complete_url is not None:
            say(f"With the code filled in: {code.complete_url}")
        say(f"It is good for {max(1, code.seconds // 60):.0f} minutes.")
        self._prompt = CANCEL

    async def pasted(self) -> str:
        """Return the next line that is typed or piped."""
        return await self._lines.next(self._prompt)

    def tell(self, text: str) -> None:
        """Say it on stderr."""
        say(f"{self._server}: {text}")


class JsonPerson:
    """Implements `Person` for programs (DESIGN §7): each step is a line of JSON on stdout."""

    def __init__(self, server: str, lines: "Lines") -> None:
        self._server = server
        self._lines = lines

    async def show_link(self, link: "SignInLink") -> None:
        """Print the page to open."""
        print_json_line({"event": "authorize", "url": link.url, "redirect_uri": link.redirect_uri})

    async def show_code(self, code: "DeviceCode") -> None:
        """Print the page and the code."""
        print_json_line(
            {
                "event": "device",
                "verification_uri": code.url,
                "user_code": code.user_code,
                "verification_uri_complete": code.complete_url,
                "expires_in": code.seconds,
            }
        )

    async def pasted(self) -> str:
        """Return the next line that is piped."""
        return await self._lines.next("")

    def tell(self, text: str) -> None:
        """Say it on stderr."""
        say(f"{self._server}: {text}")


def forward(port: int, environ: Mapping[str, str]) -> str:
    """Return the command that leads a port of the person's machine here, over SSH."""
    # What the person's machine called this one: "client port server port".
    _, _, host, ssh_port = (environ.get("SSH_CONNECTION", "").split() + [""] * 4)[:4]
    named = f" -p {ssh_port}" if ssh_port not in {"", _SSH_PORT} else ""
    user = environ.get("USER") or environ.get("LOGNAME") or getpass.getuser()
    return f"ssh -N -L {port}:127.0.0.1:{port} {user}@{host or socket.gethostname()}{named}"
