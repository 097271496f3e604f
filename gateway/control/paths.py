"""Where the control socket of a home is: the same answer for the gateway and for its clients."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SOCKET_NAME: Final = "gateway.sock"
MAX_PATH_BYTES: Final = 107
"""What fits `sun_path` with its end."""


def socket_path(home: Path, *, environ: Mapping[str, str]) -> Path:
    """Return the path in the home, or a short one elsewhere when that is too long to be bound."""
    direct = home / SOCKET_NAME
    if len(os.fsencode(direct)) <= MAX_PATH_BYTES:
        return direct
    digest = hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:16]
    return short_directory(environ) / f"hermes-{digest}.sock"


def short_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory for sockets whose home is too deep; it must be ours alone."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if runtime:
        return Path(runtime)
    # Whoever binds there makes sure first that the directory is ours and closed to others.
    return Path(f"/tmp/hermes-{os.getuid()}")  # noqa: S108
