"""Where everything of one gateway lives, and how its private places are made."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gateway.domain.errors import ConfigError, HomeError

DEFAULT_PROFILE: Final = "default"
DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600

PROFILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Home:
    """One home directory, with the place of every file in it. Reads and makes nothing by itself."""

    path: Path
    profile: str = field(default=DEFAULT_PROFILE, kw_only=True)

    @property
    def config_file(self) -> Path:
        """The one configuration file that is read."""
        return self.path / "config.yaml"

    @property
    def env_file(self) -> Path:
        """The profile's secrets."""
        return self.path / ".env"

    @property
    def state_db(self) -> Path:
        """The store, unless `store.url` says otherwise."""
        return self.path / "state.db"

    @property
    def lock_file(self) -> Path:
        """Held by the gateway that owns this home."""
        return self.path / "gateway.lock"

    @property
    def logs(self) -> Path:
        """The directory of the logs."""
        return self.path / "logs"

    @property
    def gateway_log(self) -> Path:
        """What the process says."""
        return self.logs / "gateway.log"

    @property
    def agent_log(self) -> Path:
        """What the agent and its servers did, one line each."""
        return self.logs / "agent.log"

    @property
    def mcp_stderr_log(self) -> Path:
        """What stdio servers print on stderr."""
        return self.logs / "mcp-stderr.log"

    @property
    def mcp_tokens(self) -> Path:
        """OAuth tokens, one file a server."""
        return self.path / "mcp-tokens"

    @property
    def cache(self) -> Path:
        """What can be made again."""
        return self.path / "cache"

    @property
    def schema_cache(self) -> Path:
        """The tools of servers that start on first use."""
        return self.cache / "mcp_schema_cache.json"

    @property
    def mcp_installs(self) -> Path:
        """Clones of catalog entries."""
        return self.path / "mcp-installs"

    @property
    def media(self) -> Path:
        """Attachments and large results."""
        return self.path / "media"

    @property
    def chat_history(self) -> Path:
        """The lines typed in the terminal chat."""
        return self.cache / "chat_history"

    def create(self) -> None:
        """Make the directories that are missing, readable by nobody else from the first moment.

        Raises:
            HomeError: A directory cannot be made or written.
        """
        places = (self.logs, self.mcp_tokens, self.cache, self.mcp_installs, self.media)
        for place in (self.path, *places):
            try:
                make_private(place)
            except OSError as cause:
                problem = f"{place} cannot be created ({cause.strerror}); {_remedy()}"
                raise HomeError(str(self.path), problem) from cause
            if not os.access(place, os.R_OK | os.W_OK | os.X_OK):
                raise HomeError(str(self.path), f"{place} is not writable; {_remedy()}")


def find_home(environ: Mapping[str, str], *, profile: str | None = None) -> Home:
    """Find the home of a profile: the named one, `$HERMES_PROFILE`, or the default.

    Raises:
        ConfigError: The profile's name cannot be a directory of `profiles/`.
        HomeError: Neither `$HERMES_HOME` nor a home directory of the user is given.
    """
    root = _root(environ)
    name = profile if profile is not None else environ.get("HERMES_PROFILE", "")
    if name in {"", DEFAULT_PROFILE}:
        return Home(root)
    if not PROFILE_NAME.fullmatch(name):
        problem = "a profile name has 1 to 64 letters, digits, dots, dashes and underscores"
        raise ConfigError("profile", problem)
    return Home(root / "profiles" / name, profile=name)


def make_private(directory: Path) -> None:
    """Make a directory and its missing parents, each 0700 when it appears.

    Raises:
        OSError: One of them cannot be made.
    """
    if directory.is_dir():
        return
    if directory.parent != directory:
        make_private(directory.parent)
    before = os.umask(0o077)
    try:
        directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    finally:
        os.umask(before)


def _root(environ: Mapping[str, str]) -> Path:
    user_home = environ.get("HOME", "")
    given = environ.get("HERMES_HOME", "")
    if given == "~" or given.startswith("~/"):
        given = f"{user_home}{given[1:]}"
    if given:
        return Path(given).absolute()
    # A container that runs as an arbitrary user often has no home, or / as one.
    if user_home in {"", "/"}:
        where = "HOME is not set" if not user_home else "HOME is /"
        raise HomeError("~/.hermes", f"{where}; set HERMES_HOME to a directory you can write")
    return Path(user_home).absolute() / ".hermes"


def _remedy() -> str:
    return f"set HERMES_HOME to a directory that user {os.getuid()} can write"
