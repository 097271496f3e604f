"""Signing in to servers: what is shown to a person and heard from them, in a shell or in a chat."""

from dataclasses import dataclass
from typing import Final, Protocol

CANCEL: Final = "cancel"
"""What a person types to give a sign-in up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInLink:
    """A page to open; `port` is where the browser's answer is awaited on this machine.

    `port` is None when the answer cannot come by itself and has to be pasted.
    """

    url: str
    port: int | None
    redirect_uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """A code to enter at a page, on any device; `complete_url` has it filled in already."""

    user_code: str
    url: str
    complete_url: str | None
    seconds: float


class Person(Protocol):
    """Who signs in. Nothing here is called by what runs in the background."""

    async def show_link(self, link: SignInLink) -> None:
        """Show the page to open; a terminal may open it in a browser."""
        ...

    async def show_code(self, code: DeviceCode) -> None:
        """Show the code and the page to enter it at."""
        ...

    async def pasted(self) -> str:
        """Return the next line the person gives; waits for ever when none can come."""
        ...

    def tell(self, text: str) -> None:
        """Say one sentence: why what was pasted is not it, or a warning."""
        ...


class SigningIn(Protocol):
    """Who can sign a person in to a server."""

    async def sign_in(self, server: str, person: Person) -> None:
        """Return once somebody is signed in, and the server is being connected with that.

        Raises:
            ToolHostError: It failed, or the server wants no sign-in; what was before is as it was.
        """
        ...
