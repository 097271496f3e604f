"""The MCP server behind it: says who signs people in, and lets nobody by without a good token."""

from typing import Any

from tests.fakes.loopback_http import Answer, Request
from tests.fakes.oauth.authority import Authority
from tests.fakes.oauth.settings import MetadataAt, ResourceAt
from tests.fakes.oauth.world import RESOURCE, Seen, World

HIDDEN_METADATA = "/about/resource"
WELL_KNOWN = "/.well-known/oauth-protected-resource"


class Guard:
    """Comes before the MCP server in everything."""

    def __init__(self, world: World, authority: Authority) -> None:
        self._world = world
        self._authority = authority

    async def intercept(self, request: Request, answer: Answer) -> bool:
        """Answer what the MCP server must not see."""
        world = self._world
        seen = world.note(RESOURCE, request)
        if world.before is not None and await world.before(request, answer):
            return True
        if seen.path == "/mcp":
            return await self._stopped(seen, answer)
        if seen.method == "GET" and seen.path == self._place():
            await answer.json(200, self._described())
        elif world.settings.metadata_at is MetadataAt.ORIGIN:
            await self._authority.answer(seen, answer, world.resource_origin)
        else:
            await answer.json(404, {})
        return True

    async def _stopped(self, seen: Seen, answer: Answer) -> bool:
        world = self._world
        method = str(seen.json.get("method", ""))
        if method in world.settings.open_methods:
            return False
        scheme, _, token = seen.headers.get("authorization", "").partition(" ")
        access = world.books.valid(token, world.now()) if scheme.lower() == "bearer" else None
        if access is None or not world.is_for_us(access.family.resource):
            await self._challenge(answer, invalid=bool(token))
            return True
        params: Any = seen.json.get("params") or {}
        needed = world.settings.tool_scopes.get(str(params.get("name")), "")
        if method == "tools/call" and not set(needed.split()) <= set(access.scope.split()):
            fields = {"error": "insufficient_scope", "scope": needed}
            await answer.json(403, {}, headers=self._header(fields))
            return True
        return False

    async def _challenge(self, answer: Answer, *, invalid: bool) -> None:
        settings = self._world.settings
        fields: dict[str, str] = {}
        if invalid:
            fields["error"] = "invalid_token"
        if settings.challenge_scope is not None:
            fields["scope"] = settings.challenge_scope
        await answer.json(401, {}, headers=self._header(fields) if settings.challenges else {})

    def _header(self, fields: dict[str, str]) -> dict[str, str]:
        named = dict(fields)
        if self._world.settings.resource_at is ResourceAt.HEADER:
            named["resource_metadata"] = self._world.resource_origin + HIDDEN_METADATA
        said = ", ".join(f'{name}="{value}"' for name, value in named.items())
        return {"www-authenticate": f"Bearer {said}".rstrip()}

    def _place(self) -> str:
        match self._world.settings.resource_at:
            case ResourceAt.HEADER:
                return HIDDEN_METADATA
            case ResourceAt.PATH:
                return f"{WELL_KNOWN}/mcp"
            case ResourceAt.ROOT:
                return WELL_KNOWN
            case ResourceAt.NOWHERE:
                return ""

    def _described(self) -> dict[str, Any]:
        """Return what the server says of itself (RFC 9728 section 2)."""
        world = self._world
        return {
            "resource": world.resource,
            "authorization_servers": [world.issuer + world.settings.named_suffix],
            "scopes_supported": list(world.settings.scopes),
        }
