"""The SDK's client, set up for one account. A call is made once: whether it is repeated is decided here.

By itself the SDK would make a call again whose connection broke, which would post a message twice.
"""

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.config import SlackAccount
from adapters.slack.errors import FAILURES, translate

CALL_SECONDS: Final = 20.0
CONNECT_SECONDS: Final = 10.0
CONNECTIONS: Final = 32

quiet: Final = logging.getLogger("slack_sdk.quiet")
"""For the libraries: at their finer levels they write out messages and addresses with secrets."""

Json = Mapping[str, Any]


class Client:
    """One workspace's calls; made by `open_client`."""

    def __init__(self, account: SlackAccount, session: aiohttp.ClientSession) -> None:
        quiet.setLevel(logging.CRITICAL)
        self.session = session
        self.token = account.bot_token.get_secret_value()
        self._app_token = account.app_token.get_secret_value()
        # It types what it is given, and nothing that it gives.
        self.web: Any = AsyncWebClient(
            token=self.token,
            base_url=f"{account.base_url}/",
            timeout=int(CALL_SECONDS),
            session=session,
            trust_env_in_session=True,
            logger=quiet,
            retry_handlers=[],
        )

    async def post(self, method: str, **values: object) -> Json:
        """Make a call that changes something.

        Raises:
            AdapterError: As `translate` says.
        """
        return await self._call(method, json=_given(values))

    async def ask(self, method: str, **values: object) -> Json:
        """Make a call that only reads; Slack takes no JSON for these.

        Raises:
            AdapterError: As `translate` says.
        """
        return await self._call(method, params=_given(values))

    async def scopes(self) -> tuple[Json, frozenset[str]]:
        """Return who we are (`auth.test`), and what we may do.

        Raises:
            AdapterError: As `translate` says.
        """
        try:
            answer: Any = await self.web.api_call("auth.test")
        except FAILURES as error:
            raise translate(error) from error
        headers = cast("Mapping[str, str]", answer.headers)
        told = next((v for k, v in headers.items() if k.lower() == "x-oauth-scopes"), "")
        scopes = frozenset(scope.strip() for scope in told.split(",") if scope.strip())
        return cast("Json", answer.data), scopes

    async def socket_address(self) -> str:
        """Return where the next socket is to be opened.

        Raises:
            AdapterError: As `translate` says.
        """
        bearer = {"Authorization": f"Bearer {self._app_token}"}
        answer = await self._call("apps.connections.open", headers=bearer)
        return str(answer["url"])

    async def pages(
        self, method: str, key: str, *, most: int, **values: object
    ) -> tuple[Sequence[Json], bool]:
        """Return what is listed under a key, and whether that is all of it.

        Raises:
            AdapterError: As `translate` says.
        """
        found: list[Json] = []
        cursor = ""
        for _ in range(most):
            answer = await self.ask(method, **values, **({"cursor": cursor} if cursor else {}))
            found += answer.get(key) or ()
            cursor = str(
                cast("Json", answer.get("response_metadata") or {}).get("next_cursor") or ""
            )
            if not cursor:
                return found, True
        return found, False

    async def _call(self, method: str, **how: Any) -> Json:
        try:
            answer: Any = await self.web.api_call(method, **how)
        except FAILURES as error:
            raise translate(error) from error
        return cast("Json", answer.data)


@asynccontextmanager
async def open_client(account: SlackAccount) -> AsyncGenerator[Client]:
    """Open the client of an account; nothing is asked of the service yet."""
    timeout = aiohttp.ClientTimeout(total=CALL_SECONDS, connect=CONNECT_SECONDS)
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(
        timeout=timeout, connector=connector, trust_env=True
    ) as session:
        yield Client(account, session)


def _given(values: Mapping[str, object]) -> dict[str, object]:
    """Leave out what is not said."""
    return {key: value for key, value in values.items() if value is not None}
