"""The token endpoint: each grant, with what it must prove (RFC 6749, 7636, 8628, 8707)."""

import base64
import hashlib
from typing import Any

from tests.fakes.oauth import clients
from tests.fakes.oauth.books import DeviceState, Family, Refused
from tests.fakes.oauth.settings import Known, Method
from tests.fakes.oauth.world import TOKEN, Seen, World

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
SLOWER_SECONDS = 5
"""What each `slow_down` adds to the interval (RFC 8628 section 3.5)."""


def grant(world: World, seen: Seen, origin: str) -> dict[str, Any]:
    """Answer one token request that was sent to an origin.

    Raises:
        Refused: With the error that the client reads.
    """
    issuer = origin + seen.path.removesuffix(TOKEN)
    client = clients.authenticated(world, seen)
    match seen.form.get("grant_type"):
        case "authorization_code":
            return _by_code(world, seen, client, issuer)
        case "refresh_token":
            return _by_refresh(world, seen, client, issuer)
        case "client_credentials" if world.settings.client_credentials:
            return _by_credentials(world, seen, client, issuer)
        case kind if kind == DEVICE_GRANT and world.settings.device:
            return _by_device(world, seen, client, issuer)
        case other:
            raise Refused("unsupported_grant_type", str(other))


def check_resource(world: World, given: str | None) -> None:
    """Take what the token is for (RFC 8707 section 2).

    Raises:
        Refused: It is missing, or something else.
    """
    if not world.is_for_us(given):
        raise Refused("invalid_target", f"{given} is not {world.resource}")


def _by_code(world: World, seen: Seen, client: Known, issuer: str) -> dict[str, Any]:
    code = world.books.codes.get(seen.form.get("code", ""))
    if code is None or code.issuer != issuer or code.client_id != client.client_id:
        raise Refused("invalid_grant", "no such code for this client here")
    if code.family is not None:
        world.books.replays += 1
        code.family.revoked = True
        raise Refused("invalid_grant", "the code was used before")
    if seen.form.get("redirect_uri") != code.redirect_uri:
        raise Refused("invalid_grant", "another redirect_uri")
    verifier = seen.form.get("code_verifier", "")
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    if not 43 <= len(verifier) <= 128 or digest.rstrip(b"=").decode() != code.challenge:
        raise Refused("invalid_grant", "the code_verifier does not fit")
    check_resource(world, seen.form.get("resource"))
    code.family = world.books.open_family(
        Family(client_id=client.client_id, scope=code.scope, resource=code.resource, issuer=issuer),
        refresh=_refreshes(world, offline=code.offline),
    )
    return _answer(world, code.family)


def _by_refresh(world: World, seen: Seen, client: Known, issuer: str) -> dict[str, Any]:
    check_resource(world, seen.form.get("resource"))
    settings = world.settings
    family = world.books.spend(
        seen.form.get("refresh_token", ""),
        issuer,
        # Who does not repeat the token means the old one to stay good.
        rotates=settings.rotates and settings.repeats_refresh_token,
        detects_reuse=settings.detects_reuse,
    )
    if family.client_id != client.client_id:
        raise Refused("invalid_grant", "of another client")
    return _answer(world, family, repeats=settings.repeats_refresh_token)


def _by_credentials(world: World, seen: Seen, client: Known, issuer: str) -> dict[str, Any]:
    if client.method is Method.NONE:
        raise Refused("unauthorized_client", "a client without a secret")
    check_resource(world, seen.form.get("resource"))
    family = Family(
        client_id=client.client_id,
        scope=seen.form.get("scope", ""),
        resource=seen.form.get("resource"),
        issuer=issuer,
    )
    # RFC 6749 section 4.4.3: a refresh token is not for this grant.
    return _answer(world, world.books.open_family(family, refresh=False))


def _by_device(world: World, seen: Seen, client: Known, issuer: str) -> dict[str, Any]:
    device = world.books.devices.get(seen.form.get("device_code", ""))
    if device is None or (device.client_id, device.issuer) != (client.client_id, issuer):
        raise Refused("invalid_grant", "no such device code for this client here")
    now = world.now()
    too_soon = device.polled_at is not None and now - device.polled_at < device.interval
    device.polled_at = now
    if now >= device.expires_at:
        device.state = DeviceState.EXPIRED
    if too_soon or world.settings.slow_downs:
        if not too_soon:
            world.change(slow_downs=world.settings.slow_downs - 1)
        device.interval += SLOWER_SECONDS
        raise Refused("slow_down")
    if device.state is not DeviceState.APPROVED:
        raise Refused(device.state.value)
    device.state = DeviceState.EXPIRED
    family = Family(
        client_id=client.client_id, scope=device.scope, resource=device.resource, issuer=issuer
    )
    refreshes = _refreshes(world, offline="offline_access" in device.scope.split())
    return _answer(world, world.books.open_family(family, refresh=refreshes))


def _refreshes(world: World, *, offline: bool) -> bool:
    wanted = world.settings.refresh_for
    return wanted == "everybody" or (wanted == "offline" and offline)


def _answer(world: World, family: Family, *, repeats: bool = True) -> dict[str, Any]:
    seconds = world.settings.access_seconds
    answer: dict[str, Any] = {
        "access_token": world.books.issue(family, until=world.now() + seconds),
        "token_type": "Bearer",
        "scope": family.scope,
    }
    if world.settings.expires_in != "absent":
        said = int(seconds) if seconds == int(seconds) else seconds
        answer["expires_in"] = str(said) if world.settings.expires_in == "text" else said
    if family.refresh is not None and repeats:
        answer["refresh_token"] = family.refresh
    return answer
