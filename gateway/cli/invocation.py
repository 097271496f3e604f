"""What the global options of one call say: which home, in which environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    import typer

    from gateway.config.home import Home


class Invocation:
    """One call of `hermes`. `secrets` are kept out of everything an error prints."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        self.profile: str | None = None
        self.secrets: frozenset[str] = frozenset()

    def home(self) -> Home:
        """Find the home; nothing is made.

        Raises:
            ConfigError: The profile's name is none.
            HomeError: There is no home directory.
        """
        from gateway.config.home import find_home

        return find_home(self.environ, profile=self.profile)


def invocation_of(ctx: typer.Context) -> Invocation:
    """Return the call a command belongs to."""
    return cast("Invocation", ctx.find_root().obj)


def home_of(ctx: typer.Context) -> Home:
    """Return the home of the call a command belongs to; see `Invocation.home`."""
    return invocation_of(ctx).home()
