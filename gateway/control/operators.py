"""The user of a home as an actor: whoever has its control socket, or its files, is its operator."""

import os
import pwd
from typing import Final

from gateway.domain.ids import Actor
from gateway.domain.question import Surface

PLATFORM_OF: Final = {
    Surface.CLI: "cli",
    Surface.DASHBOARD: "web",
    Surface.BRIDGE: "bridge",
    Surface.CHANNEL: "channel",
}
"""The surfaces of the API, with the platform part of whoever uses them."""


def operators(uid: int) -> frozenset[str]:
    """Return the actors that a user is, one for each surface."""
    return frozenset(f"{platform}:{uid}" for platform in PLATFORM_OF.values())


def operator_here() -> Actor:
    """Return the user of this process, in the shell."""
    return Actor(platform=PLATFORM_OF[Surface.CLI], id=str(os.getuid()), name=user_name())


def user_name() -> str:
    """Return what the user of this process is called."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        # A container may run as a user that has no name.
        return str(os.getuid())
