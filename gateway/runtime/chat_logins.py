"""Sign-ins to MCP servers in a chat: the link or code out, the pasted redirect in.

One at a time for each direct message. Nothing of it is a row: a sign-in that a restart cuts off is
begun anew, and what is pasted into it is good for that one alone.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final, Protocol

from gateway.domain.delivery import Origin
from gateway.domain.errors import GatewayError
from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.message import CommandGiven, InboundEvent, InboundMessage
from gateway.domain.operations.deliveries import Enqueue, Enqueued
from gateway.domain.operations.inbound import StoredInbound
from gateway.ports import Clock, Renderer
from gateway.ports.signing_in import CANCEL, DeviceCode, SigningIn, SignInLink
from gateway.runtime.cards import one_line
from gateway.runtime.command_replies import Replies
from gateway.runtime.persist import persist
from gateway.runtime.wakeups import Wakeups

logger = logging.getLogger(__name__)

LOGIN: Final = "login"
LINK_SECONDS: Final = 20.0
"""How long a server may take until there is a link to show."""


class Notices(Protocol):
    """Where what is said later is put."""

    async def enqueue(self, enqueue: Enqueue) -> Enqueued: ...


class ChatLogins:
    """The sign-ins that people have begun in chats; `run` ends them all with itself."""

    def __init__(
        self,
        signing: SigningIn | None,
        store: Notices,
        renderers: Mapping[str, Renderer],
        wakeups: Wakeups,
        clock: Clock,
    ) -> None:
        self._signing = signing
        self._store = store
        self._renderers = renderers
        self._wakeups = wakeups
        self._clock = clock
        self._waiting: dict[str, _Login] = {}

    @property
    def replies(self) -> Replies:
        """What answers its command."""
        return {LOGIN: self._reply}

    async def _reply(self, stored: StoredInbound, event: CommandGiven) -> str:
        del stored
        return await self.answer(event.place, event.sender, event.argument.strip())

    async def run(self) -> None:
        """Wait until cancelled; then no sign-in goes on."""
        try:
            await asyncio.Event().wait()
        finally:
            tasks = [login.task for login in self._waiting.values() if login.task is not None]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    def meant(self, event: InboundEvent) -> InboundEvent:
        """Return an event as it is stored: what answers a waiting sign-in is no message to the agent."""
        if not isinstance(event, InboundMessage):
            return event
        login = self._waiting.get(event.place.session_key)
        text = event.text.strip()
        if login is None or login.by.id != event.sender.id or not _is_answer(text):
            return event
        return CommandGiven(
            place=event.place,
            native_id=event.native_id,
            dedupe=event.dedupe,
            sender=event.sender,
            sent_at=event.sent_at,
            name=LOGIN,
            argument=text,
        )

    async def answer(self, place: Place, by: Actor, argument: str) -> str:
        """Begin a sign-in, or hand it what was pasted; return what to tell, "" for nothing yet."""
        if place.chat_type is not ChatType.DM:
            return "Sign in from a direct message with me: the link is for you alone."
        waiting = self._waiting.get(place.session_key)
        if _is_answer(argument):
            if waiting is None:
                return "No sign-in waits for that. Begin one with /login NAME."
            waiting.lines.put_nowait(argument)
            return ""
        if self._signing is None:
            return "There is nothing to sign in to here."
        if not argument:
            return "Which server? /login NAME; /mcp lists them."
        if waiting is not None:
            return f"A sign-in to {one_line(waiting.server)} waits here already; send {CANCEL} to end it."
        login = _Login(argument, by, lambda text: self._say(place, text))
        self._waiting[place.session_key] = login
        login.task = asyncio.create_task(
            self._sign_in(place, login, self._signing), name=f"login:{argument}"
        )
        return await login.first_words()

    async def _sign_in(self, place: Place, login: "_Login", signing: SigningIn) -> None:
        said = ""
        try:
            await signing.sign_in(login.server, login)
            said = f"Signed in to {one_line(login.server)}. Its tools are being listed: /mcp"
        except GatewayError as error:
            said = f"Not signed in: {one_line(error.public_message, 500)}"
        except Exception:
            logger.exception("a sign-in to %s failed", login.server)
            said = "Not signed in: something went wrong on our side; the log has the detail."
        finally:
            self._waiting.pop(place.session_key, None)
            if said and not login.end(said):
                await self._say(place, said)

    async def _say(self, place: Place, text: str) -> None:
        renderer = self._renderers.get(place.platform)
        parts = renderer.text(text) if renderer is not None else ()
        if not parts:
            return
        key = f"login:{place.session_key}:{self._clock.now().timestamp():.6f}"
        notice = Enqueue(place=place, group_key=key, parts=parts, origin=Origin.NOTICE)
        await persist(lambda: self._store.enqueue(notice), clock=self._clock)
        self._wakeups.deliveries()


class _Login:
    """Implements `Person` for one sign-in: the first words answer the command, the rest are notices."""

    def __init__(self, server: str, by: Actor, say: "_Say") -> None:
        self.server = server
        self.by = by
        self.lines: asyncio.Queue[str] = asyncio.Queue()
        self.task: asyncio.Task[None] | None = None
        self._say = say
        self._first: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._later: set[asyncio.Task[None]] = set()

    async def first_words(self) -> str:
        """Return what is told at once: the link, the code, or why there is none."""
        try:
            async with asyncio.timeout(LINK_SECONDS):
                return await asyncio.shield(self._first)
        except TimeoutError:
            return (
                f"{one_line(self.server)} takes its time; the link comes as soon as there is one."
            )

    def end(self, text: str) -> bool:
        """Say the last words if they are the first; returns whether they were."""
        return self._tell_first(text)

    async def show_link(self, link: SignInLink) -> None:
        await self._show(
            f"Open this page to sign in to {one_line(self.server)}: {link.url}\n\n"
            "Your browser ends at an address that it may not be able to show. "
            f"Paste that whole address here, or send {CANCEL}."
        )

    async def show_code(self, code: DeviceCode) -> None:
        await self._show(
            f"Open {code.url} to sign in to {one_line(self.server)} and enter the code "
            f"`{code.user_code}`, within {max(1, code.seconds // 60):.0f} minutes. "
            f"Send {CANCEL} to end it."
        )

    async def pasted(self) -> str:
        return await self.lines.get()

    def tell(self, text: str) -> None:
        task = asyncio.create_task(self._say(text), name=f"login says:{self.server}")
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _show(self, text: str) -> None:
        if not self._tell_first(text):
            await self._say(text)

    def _tell_first(self, text: str) -> bool:
        if self._first.done():
            return False
        self._first.set_result(text)
        return True


class _Say(Protocol):
    async def __call__(self, text: str, /) -> None: ...


def _is_answer(text: str) -> bool:
    """Tell whether a text is what a waiting sign-in wants: a redirect, its query, or its end."""
    return text.casefold() == CANCEL or ("state=" in text and ("code=" in text or "error=" in text))
