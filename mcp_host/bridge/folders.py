"""Which local files may be sent: those in folders that were allowed, links followed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mcp_host.bridge.problems import Problem

_SHARED: Final = frozenset({Path("/"), Path("/tmp"), Path("/var"), Path("/etc")})  # noqa: S108


class Folders:
    """The allowed ones; a relative path is meant in the working directory."""

    def __init__(self, allowed: Sequence[Path], *, working: Path) -> None:
        self._allowed = tuple(folder.resolve() for folder in allowed)
        self._working = working

    def checked(self, path: str) -> str:
        """Return the real path of a file that may be sent.

        Raises:
            Problem: It is none, or lies elsewhere.
        """
        try:
            found = (self._working / path).resolve(strict=True)
        except (OSError, ValueError, RuntimeError) as error:
            raise Problem("invalid_arguments", f"{path} cannot be read") from error
        if not any(found.is_relative_to(folder) for folder in self._allowed):
            named = ", ".join(str(folder) for folder in self._allowed) or "none"
            sentence = (
                f"{path} is outside the folders that files may be sent from ({named}); "
                "mcp_serve.folders names others"
            )
            raise Problem("not_allowed", sentence)
        return str(found)


def default_folders(*, working: Path, user_home: Path, media: Path) -> tuple[Path, ...]:
    """Return the working directory, unless that is everybody's or the user's whole home, and the media."""
    place = working.resolve()
    too_wide = place in _SHARED or user_home.resolve().is_relative_to(place)
    return (media,) if too_wide else (place, media)
