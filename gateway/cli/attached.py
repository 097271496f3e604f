"""`hermes chat` beside a running gateway: the same terminal, whose work is done over the control socket."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from adapters.terminal.adapter import TerminalAdapter
from adapters.terminal.ids import PLACE
from gateway.app import OutputLost
from gateway.cli.attached_cards import AnswerStep, Cards, Decision, Redrawn, Said, Wish
from gateway.domain.conversation import Activity
from gateway.domain.errors import DeliveryUnsure, GatewayRefused
from gateway.domain.message import (
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    InboundEvent,
    InboundMessage,
)
from gateway.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.terminal.screen import Screen
    from gateway.control.client import SocketClient
    from gateway.domain.delivery import Delivery

CLIENT: Final = f"{PLACE.platform}:{PLACE.chat}"
REPEATED: Final = "(this may be a repeat)\n"

_PAUSES: Final = {"asking": Activity.ASKING, "end": Activity.SETTLED}


async def chat_attached(
    client: "SocketClient",
    open_screen: "Callable[[], Screen]",
    *,
    interactive: bool,
    toolsets: "Sequence[str]" = (),
) -> bool:
    """Chat through the running gateway until the input ends; False when its last turn failed.

    `interactive` false: one question, of which only the reply is shown. The screen is opened
    once the gateway answers. `toolsets` are the only ones it may use, none named is all.

    Raises:
        GatewayNotRunning: Nothing was read from the screen.
        OutputLost: The answers could not be written any more.
        GatewayRefused: The gateway ended, or cannot do it.
    """
    async with client.follow(CLIENT, interactive=interactive) as lines:
        chat = _Chat(client, open_screen(), interactive=interactive, toolsets=toolsets)
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(chat.follow(lines), name="chat:follow")
            await chat.adapter.run(chat)
            following.cancel()
    if chat.adapter.lost is not None:
        raise OutputLost(chat.adapter.lost) from chat.adapter.lost
    return not chat.failed


class _Chat:
    """Implements the terminal's `Progress` and `EventSink` on the API."""

    def __init__(
        self,
        client: "SocketClient",
        screen: "Screen",
        *,
        interactive: bool,
        toolsets: "Sequence[str]",
    ) -> None:
        clock = SystemClock()
        self._client = client
        self._screen = screen
        self._interactive = interactive
        self._toolsets = toolsets
        self._cards = Cards(PLACE, clock)
        self._changed = asyncio.Event()
        self._given = 0
        self._told = -1
        self._pause = Activity.BUSY
        self.failed = False
        self.adapter = TerminalAdapter(screen, self, clock)

    # --- what the terminal asks ---------------------------------------------------

    async def activity(self) -> Activity:
        """Say what the gateway said last, unless something was given since."""
        return self._pause if self._told >= self._given else Activity.BUSY

    async def changed(self) -> None:
        """Return after the next line."""
        await self._changed.wait()
        self._changed.clear()

    async def open_cards(self) -> "Sequence[Delivery]":
        """Return nothing: the stream begins with them."""
        return ()

    async def emit(self, event: InboundEvent, *, position: tuple[str, str] | None = None) -> None:
        """Hand on what was typed; what the gateway refuses is shown."""
        del position
        try:
            await self._emit(event)
        except GatewayRefused as error:
            if error.code in {"gateway_timeout", "stopping"}:
                raise
            self._screen.write(error.public_message)

    def backlog(self, *, platform: str, account: str, waits: bool) -> None:
        """Nothing is typed while nobody listens."""

    # --- what the gateway tells -----------------------------------------------------

    async def follow(self, lines: AsyncGenerator[Mapping[str, Any]]) -> None:
        """Show what comes until cancelled.

        Raises:
            GatewayRefused: The gateway ended.
        """
        async for line in lines:
            await self._take(line)
            self._changed.set()
        raise GatewayRefused("gateway_timeout", "the gateway has ended; what was given is kept")

    async def _take(self, line: Mapping[str, Any]) -> None:
        kind = line["type"]
        if kind in _PAUSES:
            self._told, self._pause = line["given"], _PAUSES[kind]
        elif kind == "attached":
            # Whatever else goes on there, the first line may be given.
            self._told = 0
            self._pause = Activity.ASKING if self._cards.any_open else Activity.SETTLED
        elif kind == "failed":
            self.failed = True
        elif kind == "reply":
            self.failed = False
            await self._show(self._cards.text(_marked(line)))
        elif kind == "status" and self._interactive:
            await self._show(self._cards.text(_marked(line)))
        elif kind in {"card", "form"} and self._interactive:
            await self._show(self._cards.open(line))
        elif kind == "settled" and self._interactive:
            await self._show(self._cards.close(line))

    async def _show(self, delivery: "Delivery") -> None:
        # What cannot be written ends the terminal by itself.
        with suppress(DeliveryUnsure):
            await self.adapter.send(delivery)

    # --- what is handed on ------------------------------------------------------------

    async def _emit(self, event: InboundEvent) -> None:
        match event:
            case InboundMessage():
                await self._give(event.text)
            case CommandGiven():
                await self._give(f"/{event.name} {event.argument}".rstrip())
            case ButtonPressed():
                await self._do(self._cards.press(event.token))
            case FormSubmitted():
                await self._do(self._cards.typed(event.token, event.values))
            case _:
                raise TypeError(f"a terminal gives no {type(event).__name__}")

    async def _give(self, text: str) -> None:
        self.failed = False
        given = self._client.give(
            CLIENT,
            text,
            event_id=secrets.token_hex(8),
            interactive=self._interactive,
            toolsets=self._toolsets,
        )
        async with given as lines:
            accepted = await anext(lines)
        self._given = accepted["given"]

    async def _do(self, wish: Wish) -> None:
        match wish:
            case Said():
                if wish.text:
                    self._screen.write(wish.text)
            case Redrawn():
                await self._show(wish.card)
            case Decision():
                done = await self._client.decision(wish.question, action=wish.action)
                self._given = done["given"]
            case AnswerStep():
                done = await self._client.answer(wish.body)
                self._given = done["given"]


def _marked(line: Mapping[str, Any]) -> str:
    return f"{REPEATED}{line['text']}" if line.get("repeat") else line["text"]
