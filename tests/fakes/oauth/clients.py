"""Who a client is: registered by itself or by hand, or known by a document at its id."""

import base64
import binascii
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote_plus, urlsplit

from tests.fakes.oauth.books import Refused
from tests.fakes.oauth.settings import Known, Method, Registration
from tests.fakes.oauth.world import Seen, World

if TYPE_CHECKING:
    from collections.abc import Mapping

CIMD_PORTS = range(27890, 27895)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def register(world: World, seen: Seen) -> dict[str, Any]:
    """Register a client (RFC 7591 section 3).

    Raises:
        Refused: It is not wanted, or says too little.
    """
    if world.settings.registration is not Registration.OPEN:
        raise Refused("invalid_client_metadata", "registration is by hand here")
    uris = seen.json.get("redirect_uris", [])
    if not isinstance(uris, list):
        raise Refused("invalid_redirect_uri", "redirect_uris is no list")
    redirects = tuple(str(uri) for uri in cast("list[object]", uris))
    grants = cast("list[object]", seen.json.get("grant_types", ["authorization_code"]))
    if not redirects and "authorization_code" in grants:
        raise Refused("invalid_redirect_uri", "no redirect_uris")
    for uri in redirects:
        _check_literal(world, uri)
    wanted = Method(str(seen.json.get("token_endpoint_auth_method", Method.BASIC)))
    method = world.settings.registered_method or wanted
    client = Known(
        client_id=world.books.name("client"),
        secret=None if method is Method.NONE else world.books.name("secret"),
        method=method,
        redirect_uris=redirects,
    )
    world.books.clients[client.client_id] = client
    answer: dict[str, Any] = {
        **seen.json,
        "client_id": client.client_id,
        "token_endpoint_auth_method": method.value,
    }
    if client.secret is not None:
        answer |= {"client_secret": client.secret, "client_secret_expires_at": 0}
    return answer


def find(world: World, client_id: str, *, at_token: bool = False) -> Known:
    """Return a client by its id.

    Raises:
        Refused: Nobody is known by it.
    """
    by_hand = {client.client_id: client for client in world.settings.clients}
    known = world.books.clients.get(client_id) or by_hand.get(client_id)
    if known is not None:
        return known
    is_document = world.settings.cimd and client_id.startswith("https://")
    if is_document and (world.settings.cimd_at_token or not at_token):
        return Known(client_id=client_id, redirect_uris=_document_redirects(world, client_id))
    raise Refused("invalid_client", "unknown client", status=401)


def authenticated(world: World, seen: Seen) -> Known:
    """Return who sends a token request, having shown it in their one way (RFC 6749 section 2.3).

    Raises:
        Refused: They are not known, or show it otherwise.
    """
    basic = _basic(seen.headers.get("authorization", ""))
    named = seen.form.get("client_id") or (basic[0] if basic else "")
    client = find(world, named, at_token=True)
    posted = seen.form.get("client_secret")
    shown = {
        Method.NONE: basic is None and posted is None,
        Method.BASIC: posted is None and basic == (client.client_id, client.secret),
        Method.POST: basic is None and posted is not None and posted == client.secret,
    }
    if not shown[client.method]:
        raise Refused("invalid_client", f"not shown by {client.method}", status=401)
    return client


def check_redirect(world: World, client: Known, uri: str) -> None:
    """Take a redirect that the client registered, exactly (OAuth 2.1 section 4.1.3).

    Raises:
        Refused: It is another one.
    """
    _check_literal(world, uri)
    if not client.redirect_uris or uri in client.redirect_uris:
        return
    same = {_without_port(known) for known in client.redirect_uris}
    if world.settings.any_loopback_port and _without_port(uri) in same:
        return
    raise Refused("invalid_request", f"redirect_uri {uri} was not registered")


def _check_literal(world: World, uri: str) -> None:
    if world.settings.refuses_literal_redirect and urlsplit(uri).hostname == "127.0.0.1":
        raise Refused("request_blocked", "this request looks like an attack", status=403)


def _without_port(uri: str) -> str:
    parts = urlsplit(uri)
    if parts.hostname not in LOOPBACK:
        return uri
    return f"{parts.scheme}://{parts.hostname}{parts.path}"


def _document_redirects(world: World, url: str) -> tuple[str, ...]:
    """Return what a client's document allows; one that was not put there has the ten addresses."""
    document: Mapping[str, object] | None = world.books.documents.get(url)
    if document is not None:
        return tuple(str(uri) for uri in cast("list[object]", document["redirect_uris"]))
    hosts = ("127.0.0.1", "localhost")
    return tuple(f"http://{host}:{port}/callback" for host in hosts for port in CIMD_PORTS)


def _basic(header: str) -> tuple[str, str] | None:
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, _, secret = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return unquote_plus(name), unquote_plus(secret)
