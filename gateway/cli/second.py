"""Refuses a second gateway of a home before the command line is read: loading that takes longer."""

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.domain.errors import ConfigError, HomeError, HomeLocked

RUNS: Final = (["gateway"], ["gateway", "run"])


def refusal(args: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return why a gateway may not start, "" when it may or when something else is asked.

    What else may be wrong with the home is found, and told, by the start itself.
    """
    if list(args) not in RUNS:
        return ""
    from gateway.config.home import find_home
    from store.lock import hold_home

    try:
        with hold_home(find_home(environ).path):
            return ""
    except HomeLocked as error:
        return error.public_message
    except (HomeError, ConfigError):
        return ""
