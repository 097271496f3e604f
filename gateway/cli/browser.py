"""Opens a page in the person's browser, where there is one. The only place that can.

In a process of its own: some browsers hold whoever started them, or write to the terminal.
"""

import asyncio
import sys
from collections.abc import Mapping
from typing import Final

_WITH_A_SCREEN: Final = frozenset({"darwin", "win32"})
_SCREENS: Final = ("DISPLAY", "WAYLAND_DISPLAY")
_FAR_AWAY: Final = ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT")


def has_browser(environ: Mapping[str, str]) -> bool:
    """Tell whether a page opened here would come up before the person's eyes."""
    if environ.get("BROWSER"):
        # Whoever sets it, also an editor on another machine, means us to use it.
        return True
    if is_far_away(environ):
        return False
    return sys.platform in _WITH_A_SCREEN or any(environ.get(name) for name in _SCREENS)


def is_far_away(environ: Mapping[str, str]) -> bool:
    """Tell whether the person's terminal is on another machine, over SSH."""
    return any(environ.get(name) for name in _FAR_AWAY)


async def open_page(url: str, environ: Mapping[str, str]) -> bool:
    """Start the browser with a page; returns whether it could be tried, and waits for nothing."""
    try:
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "webbrowser",
            url,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            env=dict(environ),
        )
    except OSError:
        return False
    return True
