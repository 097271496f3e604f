"""The authorization server: who it says it is, registration, consent, devices, tokens."""

from typing import Any
from urllib.parse import urlencode

from tests.fakes.loopback_http import Answer, Request
from tests.fakes.oauth import clients, tokens
from tests.fakes.oauth.books import Code, Device, Refused
from tests.fakes.oauth.settings import Iss, MetadataAt, Registration, Trouble
from tests.fakes.oauth.world import AUTHORITY, AUTHORIZE, DEVICE, REGISTER, TOKEN, Seen, World

NO_STORE = {"cache-control": "no-store"}


class Authority:
    """Serves one origin; the MCP server's origin too, where that plays the part."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def handle(self, request: Request, answer: Answer) -> None:
        seen = self._world.note(AUTHORITY, request)
        await self.answer(seen, answer, self._world.authority_origin)

    async def answer(self, seen: Seen, answer: Answer, origin: str) -> None:
        """Answer a request that is for an authorization server."""
        if self._world.settings.wants_user_agent and not seen.headers.get("user-agent"):
            await answer.whole(403, b"<h1>Blocked</h1>", media_type="text/html")
            return
        try:
            await self._routed(seen, answer, origin)
        except Refused as refused:
            body = {"error": refused.error, "error_description": refused.said}
            await answer.json(refused.status, body, headers=NO_STORE)

    async def _routed(self, seen: Seen, answer: Answer, origin: str) -> None:
        world = self._world
        if seen.method == "GET" and seen.path == self._metadata_path():
            await answer.json(200, metadata(world))
        elif seen.method == "GET" and seen.path.endswith(AUTHORIZE):
            location = authorize(world, seen, origin)
            await answer.whole(302, b"", headers={"location": location})
        elif seen.method == "POST" and seen.path.endswith(TOKEN):
            await self._token(seen, answer, origin)
        elif seen.method == "POST" and seen.path.endswith(REGISTER):
            if world.settings.registration is Registration.UNKNOWN:
                raise Refused("not_found", status=404)
            await answer.json(201, clients.register(world, seen))
        elif seen.method == "POST" and seen.path.endswith(DEVICE) and world.settings.device:
            await answer.json(200, new_device(world, seen, origin), headers=NO_STORE)
        else:
            await answer.json(404, {"error": "not_found"})

    def _metadata_path(self) -> str:
        path = self._world.settings.issuer_path
        match self._world.settings.metadata_at:
            case MetadataAt.OAUTH:
                return f"/.well-known/oauth-authorization-server{path}"
            case MetadataAt.OAUTH_SUFFIX:
                return f"{path}/.well-known/oauth-authorization-server"
            case MetadataAt.OPENID:
                return f"/.well-known/openid-configuration{path}"
            case MetadataAt.OPENID_SUFFIX:
                return f"{path}/.well-known/openid-configuration"
            case MetadataAt.ORIGIN:
                return "/.well-known/oauth-authorization-server"
            case MetadataAt.NOWHERE:
                return ""

    async def _token(self, seen: Seen, answer: Answer, origin: str) -> None:
        world = self._world
        await world.answers_tokens.wait()
        trouble = world.settings.trouble
        if trouble is None and world.trouble:
            trouble = world.trouble.pop(0)
        if trouble is None:
            await answer.json(200, tokens.grant(world, seen, origin), headers=NO_STORE)
            return
        if trouble.after:
            tokens.grant(world, seen, origin)
        await _troubled(trouble, answer)


async def _troubled(trouble: Trouble, answer: Answer) -> None:
    if trouble.cut:
        answer.cut()
        return
    headers = {} if trouble.retry_after is None else {"retry-after": str(trouble.retry_after)}
    if trouble.error:
        await answer.json(trouble.status, {"error": trouble.error}, headers=headers)
    else:
        await answer.whole(
            trouble.status, b"<h1>Oops</h1>", media_type="text/html", headers=headers
        )


def metadata(world: World) -> dict[str, Any]:
    """Return what the server says of itself (RFC 8414 section 2)."""
    settings, issuer = world.settings, world.issuer
    said: dict[str, Any] = {
        "issuer": settings.said_issuer or issuer,
        "authorization_endpoint": issuer + AUTHORIZE,
        "token_endpoint": issuer + TOKEN,
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "scopes_supported": list(settings.scopes),
    }
    if settings.registration is not Registration.UNKNOWN:
        said["registration_endpoint"] = issuer + REGISTER
    if settings.device:
        said["device_authorization_endpoint"] = issuer + DEVICE
        said["grant_types_supported"].append(tokens.DEVICE_GRANT)
    if settings.client_credentials:
        said["grant_types_supported"].append("client_credentials")
    if settings.token_methods is not None:
        methods = [method.value for method in settings.token_methods]
        said["token_endpoint_auth_methods_supported"] = methods
    if settings.challenge_methods is not None:
        said["code_challenge_methods_supported"] = list(settings.challenge_methods)
    if settings.cimd:
        said["client_id_metadata_document_supported"] = True
    if settings.advertises_iss:
        said["authorization_response_iss_parameter_supported"] = True
    return said


def authorize(world: World, seen: Seen, origin: str) -> str:
    """Return where the browser is sent after the person said yes or no (RFC 6749 section 4.1.2).

    Raises:
        Refused: The client or its redirect is not known: nothing is sent there.
    """
    asked = seen.query
    issuer = origin + seen.path.removesuffix(AUTHORIZE)
    client = clients.find(world, asked.get("client_id", ""))
    redirect = asked.get("redirect_uri", "")
    clients.check_redirect(world, client, redirect)
    answer: dict[str, str] = {}
    if "state" in asked:
        answer["state"] = asked["state"]
    match world.settings.iss:
        case Iss.RIGHT:
            answer["iss"] = issuer
        case Iss.WRONG:
            answer["iss"] = "https://evil.example"
        case Iss.ABSENT:
            pass
    try:
        answer["code"] = _code(world, asked, issuer)
    except Refused as refused:
        answer |= {"error": refused.error, "error_description": refused.said}
    return f"{redirect}{'&' if '?' in redirect else '?'}{urlencode(answer)}"


def _code(world: World, asked: Any, issuer: str) -> str:
    if asked.get("response_type") != "code":
        raise Refused("unsupported_response_type")
    if asked.get("code_challenge_method") != "S256" or not asked.get("code_challenge"):
        raise Refused("invalid_request", "PKCE with S256 is needed")
    tokens.check_resource(world, asked.get("resource"))
    if not world.settings.consent:
        raise Refused("access_denied", "the person said no")
    code = world.books.name("code")
    scope = asked.get("scope", "")
    world.books.codes[code] = Code(
        client_id=asked["client_id"],
        redirect_uri=asked["redirect_uri"],
        challenge=asked["code_challenge"],
        scope=scope,
        resource=asked.get("resource"),
        issuer=issuer,
        offline=asked.get("access_type") == "offline" or "offline_access" in scope.split(),
    )
    return code


def new_device(world: World, seen: Seen, origin: str) -> dict[str, Any]:
    """Return the codes of a device that wants to sign in (RFC 8628 section 3.2).

    Raises:
        Refused: The client is not known, or the token would be for something else.
    """
    client = clients.authenticated(world, seen)
    tokens.check_resource(world, seen.form.get("resource"))
    issuer = origin + seen.path.removesuffix(DEVICE)
    settings = world.settings
    code = world.books.name("device")
    user_code = f"WDJB-{len(world.books.devices):04}"
    world.books.devices[code] = Device(
        user_code=user_code,
        client_id=client.client_id,
        scope=seen.form.get("scope", ""),
        resource=seen.form.get("resource"),
        issuer=issuer,
        expires_at=world.now() + settings.device_seconds,
        # Five seconds when the server does not say (RFC 8628 section 3.2).
        interval=5 if settings.device_interval is None else settings.device_interval,
    )
    answer: dict[str, Any] = {
        "device_code": code,
        "user_code": user_code,
        "verification_uri": f"{issuer}/activate",
        "verification_uri_complete": f"{issuer}/activate?user_code={user_code}",
        "expires_in": settings.device_seconds,
    }
    if settings.device_interval is not None:
        answer["interval"] = settings.device_interval
    return answer
