"""Signs in by a code that a person enters on any device (RFC 8628)."""

import asyncio
from typing import Final

from gateway.domain.errors import ServerUnavailable, ToolHostError
from gateway.ports import Clock
from gateway.ports.signing_in import CANCEL, DeviceCode, Person
from mcp_host.oauth.exchange import Grant, GrantRefused, TokenEndpoint
from mcp_host.oauth.fetch import Fetcher
from mcp_host.oauth.grants import Signed, Wanted
from mcp_host.oauth.identity import Identity, document_client, identity_for, own_client, register
from mcp_host.oauth.pages import page_to_open
from mcp_host.oauth.tokens import Client, seconds
from mcp_host.sanitize import show_name

INTERVAL_SECONDS: Final = 5.0
SLOWER_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 1_800.0


class DeviceFlow:
    """One sign-in; the person may give it up by `cancel`."""

    def __init__(
        self,
        wanted: Wanted,
        endpoint: TokenEndpoint,
        fetcher: Fetcher,
        person: Person,
        clock: Clock,
    ) -> None:
        self._wanted = wanted
        self._endpoint = endpoint
        self._fetcher = fetcher
        self._person = person
        self._clock = clock

    async def run(self) -> Signed:
        """Return what was granted.

        Raises:
            ToolHostError: It is not offered, was refused, or nobody entered the code in time.
            ServerUnavailable: Something could not be reached.
        """
        server = self._wanted.server
        if self._wanted.found.server.device_authorization_endpoint is None:
            raise ToolHostError(
                server, "it offers no sign-in by device code: use --flow browser, or oauth.flow"
            )
        client = await self._client()
        device_code, shown, interval = await self._start(client)
        await self._person.show_code(shown)
        polling = asyncio.create_task(
            self._poll(client, device_code, shown.seconds, interval), name=f"device:{server}"
        )
        giving_up = asyncio.create_task(self._given_up(), name=f"cancel:{server}")
        try:
            await asyncio.wait({polling, giving_up}, return_when=asyncio.FIRST_COMPLETED)
            if not polling.done():
                raise ToolHostError(server, "the sign-in was cancelled")
            return Signed(client=client, grant=polling.result())
        finally:
            polling.cancel()
            giving_up.cancel()
            await asyncio.wait({polling, giving_up})

    async def _client(self) -> Client:
        wanted, oauth = self._wanted, self._wanted.config.oauth
        identity = identity_for(
            oauth, wanted.found.server, document_url=wanted.document_url, refused=False
        )
        if identity is Identity.OWN:
            return own_client(oauth)
        known = wanted.known_client(None)
        if known is not None:
            return known
        if identity is Identity.DOCUMENT and wanted.found.server.registration_endpoint is None:
            return document_client(wanted.document_url, "")
        return await register(
            wanted.server,
            wanted.config.url,
            oauth,
            wanted.found,
            self._fetcher,
            redirect_uri=None,
            scope=wanted.scope,
        )

    async def _start(self, client: Client) -> tuple[str, DeviceCode, float]:
        server = self._wanted.server
        answer = await self._endpoint.start_device(client, self._wanted.scope)
        if answer.undecided:
            problem = f"its device endpoint answers HTTP {answer.status}"
            raise ServerUnavailable(server, problem, sent=False)
        said = answer.json_object() or {}
        code, user_code, page = (
            said.get(name) for name in ("device_code", "user_code", "verification_uri")
        )
        given = (code, user_code, page)
        if answer.status != 200 or not all(isinstance(item, str) and item for item in given):
            raise ToolHostError(server, f"its device endpoint refuses (HTTP {answer.status})")
        complete = said.get("verification_uri_complete")
        lasts = seconds(said.get("expires_in")) or LONGEST_SECONDS
        shown = DeviceCode(
            user_code=show_name(str(user_code), limit=40),
            url=page_to_open(server, str(page)),
            complete_url=page_to_open(server, complete) if isinstance(complete, str) else None,
            seconds=min(lasts, LONGEST_SECONDS),
        )
        interval = seconds(said.get("interval")) or INTERVAL_SECONDS
        return str(code), shown, max(1.0, interval)

    async def _poll(self, client: Client, device_code: str, lasts: float, interval: float) -> Grant:
        until = self._clock.monotonic() + lasts
        while self._clock.monotonic() + interval < until:
            await self._clock.sleep(interval)
            try:
                return await self._endpoint.by_device(client, device_code)
            except ServerUnavailable:
                # RFC 8628 section 3.5: fewer questions to a server that does not keep up.
                interval *= 2
            except GrantRefused as error:
                match error.code:
                    case "authorization_pending":
                        pass
                    case "slow_down":
                        interval += SLOWER_SECONDS
                    case "access_denied":
                        raise ToolHostError(
                            self._wanted.server, "the sign-in was refused"
                        ) from None
                    case "expired_token":
                        break
                    case _:
                        raise
        raise ToolHostError(self._wanted.server, "nobody entered the code in time")

    async def _given_up(self) -> None:
        while (await self._person.pasted()).strip().lower() != CANCEL:
            self._person.tell("enter the code at the page; here, only cancel is understood")
