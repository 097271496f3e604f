"""The token files: one a server, private, replaced whole, changed by one process at a time.

A file is bound to the URL and the issuer its tokens are for. One written by hand
(`access_token`, `token_type`, `expires_in`, `refresh_token`) is bound when it is first used.
"""

import asyncio
import errno
import fcntl
import json
import math
import os
import re
import secrets
import stat
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self, cast

MAX_BYTES: Final = 1 << 20
LOCK_LOOK_SECONDS: Final = 0.02
LOCK_SECONDS: Final = 60.0
"""How long another process may hold a server's tokens: a renewal takes far less."""

LEEWAY_SECONDS: Final = 10.0
"""A token that lasts long is renewed so much before its end, so that no request races it."""

_LEEWAY_FROM_SECONDS: Final = 120
_DIRECTORY_MODE: Final = 0o700
_REFUSED: Final = ".cimd-off"


class BadTokenFile(Exception):
    """A token file that cannot be used or written; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Who we are to one authorization server; `issuer` is the one it was registered at."""

    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    auth_method: str | None = None
    redirect_uri: str | None = None
    issuer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What one file holds. `expires_at` in seconds of Unix time, None when it was not said.

    `login` tells one login from the next; `wanted_scope` is what a call lacked since the last.
    """

    access_token: str = field(default="", repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    lifetime: float | None = None
    scope: str | None = None
    wanted_scope: str | None = None
    url: str | None = None
    issuer: str | None = None
    client: Client | None = None
    login: str = ""

    def valid_at(self, now: float) -> bool:
        """Tell whether the access token can be sent at a time."""
        if not self.access_token:
            return False
        if self.expires_at is None:
            return True
        leeway = LEEWAY_SECONDS if (self.lifetime or 0) >= _LEEWAY_FROM_SECONDS else 0.0
        return now < self.expires_at - leeway

    def lasts_at(self, now: float) -> bool:
        """Tell whether the access token has not ended yet, to its last second."""
        return bool(self.access_token) and (self.expires_at is None or now < self.expires_at)

    def without_tokens(self) -> Self:
        """Return what is left when the sign-in has ended: who we are, and to whom."""
        return replace(self, access_token="", refresh_token=None, expires_at=None, lifetime=None)


def new_login() -> str:
    """Return a name for a login."""
    return secrets.token_hex(8)


class TokenStore:
    """The token files of one home, in a directory of mode 0700 that is made when it is needed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, server: str) -> Path:
        """Return a server's file; a server's name has no letter that a file's cannot have."""
        return self.directory / f"{server}.json"

    def stamp(self, server: str) -> tuple[int, int, int] | None:
        """Return what differs after each change of a server's file, None when there is none."""
        try:
            found = self.path(server).lstat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def read(self, server: str) -> Tokens | None:
        """Return what a server's file holds, None when there is none.

        Raises:
            BadTokenFile: It is a link, is cut off, or is no token file.
        """
        path = self.path(server)
        try:
            number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            why = "it is a link" if error.errno == errno.ELOOP else _system(error)
            raise BadTokenFile(f"{path} is not used: {why}") from None
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            os.close(number)
            raise BadTokenFile(f"{path} is not used: it is no file")
        with os.fdopen(number, "rb") as file:
            if stat.S_IMODE(found.st_mode) & 0o077:
                # A person wrote it under a loose umask: nobody else may read it from now on.
                with suppress(OSError):
                    os.fchmod(number, 0o600)
            data = file.read(MAX_BYTES + 1)
        return _tokens(path, data, written=found.st_mtime)

    def write(self, server: str, tokens: Tokens) -> None:
        """Put a file in place of the one before: on disk when this returns, never half.

        Only inside `locked`.

        Raises:
            BadTokenFile: It cannot be written; the one before is as it was.
        """
        path = self.path(server)
        temporary = self.directory / f".{server}.{secrets.token_hex(6)}.tmp"
        try:
            self._make_directory()
            self._sweep(server)
            _write_new(temporary, json.dumps(_as_json(tokens), indent=1).encode())
            try:
                os.replace(temporary, path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            _sync_directory(self.directory)
        except OSError as error:
            raise BadTokenFile(f"{path} cannot be written: {_system(error)}") from None

    def remove(self, server: str) -> bool:
        """Remove a server's file; returns whether there was one.

        Raises:
            BadTokenFile: It cannot be removed.
        """
        path = self.path(server)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise BadTokenFile(f"{path} cannot be removed: {_system(error)}") from None
        _sync_directory(self.directory)
        return True

    def refuse_document(self, server: str) -> None:
        """Remember, until the next login, that our document was not taken.

        Raises:
            BadTokenFile: Nothing can be written.
        """
        path = self.directory / f"{server}{_REFUSED}"
        try:
            self._make_directory()
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(path, flags, 0o600))
        except OSError as error:
            raise BadTokenFile(f"{path} cannot be written: {_system(error)}") from None

    def offer_document(self, server: str) -> None:
        """Forget that our document was not taken."""
        with suppress(OSError):
            (self.directory / f"{server}{_REFUSED}").unlink()

    @asynccontextmanager
    async def locked(self, server: str, purpose: str = "lock") -> AsyncGenerator[None]:
        """Hold a server's tokens alone, among all processes; ends with the process at the latest.

        Raises:
            BadTokenFile: Another process has held them for `LOCK_SECONDS`, or nothing can be made.
        """
        handle = self._open_lock(server, purpose)
        try:
            limit = time.monotonic() + LOCK_SECONDS
            while not _take(handle):
                if time.monotonic() > limit:
                    raise BadTokenFile(
                        f"another process holds the tokens in {self.path(server)} for too long"
                    )
                await asyncio.sleep(LOCK_LOOK_SECONDS)
            yield
        finally:
            os.close(handle)

    @asynccontextmanager
    async def at_once(self, server: str, purpose: str) -> AsyncGenerator[bool]:
        """Yield whether nobody else is at this; hold it inside the block."""
        handle = self._open_lock(server, purpose)
        try:
            yield _take(handle)
        finally:
            os.close(handle)

    def _open_lock(self, server: str, purpose: str) -> int:
        # Beside the file and never replaced, so that who waits holds the right one.
        path = self.directory / f".{server}.{purpose}"
        try:
            self._make_directory()
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(path, flags, 0o600)
        except OSError as error:
            raise BadTokenFile(f"{path} cannot be made: {_system(error)}") from None

    def _sweep(self, server: str) -> None:
        """Remove what a process left that died while it wrote: there are tokens in it."""
        left = re.compile(rf"\.{re.escape(server)}\.[0-9a-f]{{12}}\.tmp")
        for name in os.listdir(self.directory):
            if left.fullmatch(name):
                (self.directory / name).unlink(missing_ok=True)

    def _make_directory(self) -> None:
        self.directory.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
        mode = stat.S_IMODE(self.directory.stat().st_mode)
        if mode & 0o077:
            self.directory.chmod(_DIRECTORY_MODE)


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_new(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    number = os.open(path, flags, 0o600)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _sync_directory(directory: Path) -> None:
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _tokens(path: Path, data: bytes, *, written: float) -> Tokens:
    if len(data) > MAX_BYTES:
        raise BadTokenFile(f"{path} is not used: it is too large")
    try:
        raw: object = json.loads(data)
    except (ValueError, RecursionError):
        raise BadTokenFile(f"{path} is not used: it is no JSON, or was cut off") from None
    if not isinstance(raw, dict):
        raise BadTokenFile(f"{path} is not used: it is no JSON object")
    given = cast("dict[str, Any]", raw)
    kind = given.get("token_type", "Bearer")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise BadTokenFile(f"{path} is not used: its token_type is not Bearer")
    lifetime = seconds(given.get("expires_in"))
    expires_at = seconds(given.get("expires_at"))
    if expires_at is None and lifetime is not None:
        expires_at = written + lifetime
    access = _text(given, "access_token") or ""
    client = _client(given.get("client"))
    login = _text(given, "login") or ""
    if not access and not login:
        # A file of ours without one says that its sign-in has ended.
        raise BadTokenFile(f"{path} is not used: it has no access_token")
    return Tokens(
        access_token=access,
        refresh_token=_text(given, "refresh_token"),
        expires_at=expires_at,
        lifetime=lifetime,
        scope=_text(given, "scope"),
        wanted_scope=_text(given, "wanted_scope"),
        url=_text(given, "url"),
        issuer=_text(given, "issuer"),
        client=client,
        login=login,
    )


def _client(raw: object) -> Client | None:
    if not isinstance(raw, dict):
        return None
    given = cast("Mapping[str, Any]", raw)
    client_id = _text(given, "client_id")
    if client_id is None:
        return None
    return Client(
        client_id=client_id,
        client_secret=_text(given, "client_secret"),
        auth_method=_text(given, "auth_method"),
        redirect_uri=_text(given, "redirect_uri"),
        issuer=_text(given, "issuer"),
    )


def _as_json(tokens: Tokens) -> dict[str, object]:
    client = tokens.client
    written: dict[str, object | None] = {
        "access_token": tokens.access_token,
        "token_type": "Bearer",
        "expires_at": tokens.expires_at,
        "expires_in": tokens.lifetime,
        "refresh_token": tokens.refresh_token,
        "scope": tokens.scope,
        "wanted_scope": tokens.wanted_scope,
        "url": tokens.url,
        "issuer": tokens.issuer,
        "client": None if client is None else _given(_client_json(client)),
        "login": tokens.login,
    }
    return _given(written)


def _client_json(client: Client) -> dict[str, object | None]:
    return {
        "client_id": client.client_id,
        "client_secret": client.client_secret,
        "auth_method": client.auth_method,
        "redirect_uri": client.redirect_uri,
        "issuer": client.issuer,
    }


def _given(values: Mapping[str, object | None]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    return value if isinstance(value, str) and value else None


def seconds(value: object) -> float | None:
    """Read a number of seconds, which some servers write as text; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _system(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
