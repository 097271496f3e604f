"""What chat and gateway do first: write a configuration where there is none, and read it."""

from pathlib import Path
from typing import TYPE_CHECKING

from gateway.cli.output import say

if TYPE_CHECKING:
    from gateway.cli.invocation import Invocation
    from gateway.config.home import Home
    from gateway.config.load import Loaded


def ready_config(
    invocation: "Invocation", home: "Home", *, workspace: Path | None = None
) -> "Loaded":
    """Load the configuration, writing the first one where there is none, and tell what is wrong in it.

    Raises:
        ConfigError: It cannot be used.
    """
    from gateway.config.first import first_config
    from gateway.config.load import load
    from gateway.config.writer import write_first

    if write_first(home, first_config(home)):
        say(f"Wrote {home.config_file}: guided mode, with the bundled demo server.")
    loaded = load(home, environ=invocation.environ, workspace=workspace)
    invocation.secrets = loaded.secrets
    for finding in loaded.findings.items:
        say(f"{finding.severity}: {finding.path}: {finding.message}")
    return loaded
