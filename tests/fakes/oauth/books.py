"""What an authorization server remembers: clients, codes, sign-ins with their tokens, devices.

No I/O and no awaiting: what is checked and what follows from it happen at once.
"""

import itertools
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tests.fakes.oauth.settings import Known


class Refused(Exception):
    """An error of OAuth, as the client reads it (RFC 6749 sections 4.1.2.1 and 5.2)."""

    def __init__(self, error: str, said: str = "", *, status: int = 400) -> None:
        super().__init__(f"{error}: {said}")
        self.error = error
        self.said = said
        self.status = status


@dataclass(slots=True, kw_only=True)
class Family:
    """One sign-in: who it is for, the refresh token that is good now, and those that were."""

    client_id: str
    scope: str
    resource: str | None
    issuer: str
    refresh: str | None = None
    used: set[str] = field(default_factory=set[str])
    revoked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """An access token."""

    family: Family
    scope: str
    expires_at: float


@dataclass(slots=True, kw_only=True)
class Code:
    """An authorization code and what it was bound to (RFC 6749 section 4.1.2, RFC 7636)."""

    client_id: str
    redirect_uri: str
    challenge: str
    scope: str
    resource: str | None
    issuer: str
    offline: bool
    family: Family | None = None


class DeviceState(StrEnum):
    """What the person has done with a device code."""

    PENDING = "authorization_pending"
    APPROVED = "approved"
    DENIED = "access_denied"
    EXPIRED = "expired_token"


@dataclass(slots=True, kw_only=True)
class Device:
    """A device that waits for a person (RFC 8628)."""

    user_code: str
    client_id: str
    scope: str
    resource: str | None
    issuer: str
    expires_at: float
    interval: float
    state: DeviceState = DeviceState.PENDING
    polled_at: float | None = None


@dataclass(slots=True)
class Books:
    """All of it; `replays` counts refresh tokens and codes that came a second time."""

    clients: dict[str, Known] = field(default_factory=dict[str, Known])
    documents: dict[str, Mapping[str, object]] = field(
        default_factory=dict[str, Mapping[str, object]]
    )
    codes: dict[str, Code] = field(default_factory=dict[str, Code])
    families: list[Family] = field(default_factory=list[Family])
    access: dict[str, Access] = field(default_factory=dict[str, Access])
    devices: dict[str, Device] = field(default_factory=dict[str, Device])
    replays: int = 0
    misdirected: int = 0
    """Refresh tokens that were sent to an issuer that never gave them."""

    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def name(self, kind: str) -> str:
        """Return a value that nobody can guess, and a reader can tell from the others."""
        return f"{kind}-{next(self._numbers)}-{secrets.token_hex(8)}"

    def open_family(self, family: Family, *, refresh: bool) -> Family:
        """Note a new sign-in, with a refresh token or without."""
        if refresh:
            family.refresh = self.name("refresh")
        self.families.append(family)
        return family

    def issue(self, family: Family, *, until: float, scope: str | None = None) -> str:
        """Return a new access token of a sign-in."""
        token = self.name("access")
        scope = family.scope if scope is None else scope
        self.access[token] = Access(family=family, scope=scope, expires_at=until)
        return token

    def spend(self, token: str, issuer: str, *, rotates: bool, detects_reuse: bool) -> Family:
        """Take a refresh token, and put another in its place when they rotate.

        Raises:
            Refused: It is not good, or was used before: that ends the sign-in for everybody.
        """
        for family in self.families:
            if token in family.used:
                self.replays += 1
                family.revoked = family.revoked or detects_reuse
                raise Refused("invalid_grant", "used before")
            if token == family.refresh:
                break
        else:
            raise Refused("invalid_grant", "unknown refresh token")
        if family.issuer != issuer:
            self.misdirected += 1
            raise Refused("invalid_grant", "of another issuer")
        if family.revoked:
            raise Refused("invalid_grant", "revoked")
        if rotates:
            family.used.add(token)
            family.refresh = self.name("refresh")
        return family

    def valid(self, token: str, now: float) -> Access | None:
        """Return what an access token allows now."""
        access = self.access.get(token)
        if access is None or access.family.revoked or access.expires_at <= now:
            return None
        return access

    def expire(self) -> None:
        """End every access token; the sign-ins stay."""
        self.access.clear()

    def revoke(self) -> None:
        """End every sign-in."""
        for family in self.families:
            family.revoked = True
