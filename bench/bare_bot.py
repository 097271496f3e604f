"""A bot that is nothing but the libraries: what the benches of the service hold the gateway against.

A message is answered with the model's words. With a server it gets a button instead, whose press
calls the tool the message names. Nothing is written down, nobody is asked who they are.
"""

import argparse
import asyncio
import importlib
import json
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final, Protocol

import httpx

HOLD_SECONDS: Final = 25
BUTTON: Final = "Allow once"
GOT: Final = "Got:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A message, or with `query` a press of the button."""

    update: int
    chat: int
    text: str
    query: str | None = None


class Platform(Protocol):
    """What the bot needs of Telegram."""

    async def heard(self, *, offset: int, hold: int) -> Sequence[Heard]: ...

    async def send(self, chat: int, text: str, *, button: str = "") -> None: ...

    async def answer(self, query: str) -> None: ...


class Bare:
    """Telegram by HTTP alone."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def heard(self, *, offset: int, hold: int) -> Sequence[Heard]:
        found = await self._call("getUpdates", {"offset": offset, "timeout": hold})
        return [_heard(update) for update in found]

    async def send(self, chat: int, text: str, *, button: str = "") -> None:
        keyboard = {"inline_keyboard": [[{"text": button, "callback_data": button}]]}
        more = {"reply_markup": keyboard} if button else {}
        await self._call("sendMessage", {"chat_id": chat, "text": text, **more})

    async def answer(self, query: str) -> None:
        await self._call("answerCallbackQuery", {"callback_query_id": query})

    async def _call(self, method: str, values: dict[str, Any]) -> Any:
        answer = await self._client.post(method, json=values)
        answer.raise_for_status()
        return answer.json()["result"]


def _heard(update: dict[str, Any]) -> Heard:
    press = update.get("callback_query")
    message = press["message"] if press else update["message"]
    return Heard(
        update=update["update_id"],
        chat=message["chat"]["id"],
        text=message["text"],
        query=press["id"] if press else None,
    )


class Library:
    """Telegram by python-telegram-bot, as it is used by everybody."""

    def __init__(self, bot: Any) -> None:
        self._bot = bot

    async def heard(self, *, offset: int, hold: int) -> Sequence[Heard]:
        updates = await self._bot.get_updates(offset=offset, timeout=hold)
        return [_heard(update.to_dict()) for update in updates]

    async def send(self, chat: int, text: str, *, button: str = "") -> None:
        from telegram import InlineKeyboardButton, InlineKeyboardMarkup

        key = InlineKeyboardButton(button, callback_data=button) if button else None
        markup = InlineKeyboardMarkup([[key]]) if key else None
        await self._bot.send_message(chat, text, reply_markup=markup)

    async def answer(self, query: str) -> None:
        await self._bot.answer_callback_query(query)


async def _platform(stack: AsyncExitStack, url: str, token: str, *, library: bool) -> Platform:
    if not library:
        client = httpx.AsyncClient(base_url=f"{url}/bot{token}/", timeout=2 * HOLD_SECONDS)
        return Bare(await stack.enter_async_context(client))
    from telegram import Bot

    bot = Bot(token, base_url=f"{url}/bot")
    await stack.enter_async_context(bot)
    return Library(bot)


Say = Callable[[int, str], Awaitable[str]]
"""Returns what the model says in a chat, or the tool to the call a text names."""

Json = Mapping[str, Any]


async def _model(stack: AsyncExitStack, url: str, request: Json, *, library: bool) -> Say:
    """Return what asks the model as a request that was recorded asked it, with a chat's own words."""
    if not library:
        client = await stack.enter_async_context(httpx.AsyncClient())
        chats: dict[int, list[Json]] = defaultdict(lambda: [*_system(request)])

        async def post(chat: int, text: str) -> str:
            messages = chats[chat]
            messages.append({"role": "user", "content": text})
            answer = await client.post(
                f"{url}/chat/completions", json={**request, "messages": messages}
            )
            said: str = answer.json()["choices"][0]["message"]["content"]
            messages.append({"role": "assistant", "content": said})
            return said

        return post

    from pydantic_ai import messages as parts
    from pydantic_ai.direct import model_request
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.tools import ToolDefinition

    provider = OpenAIProvider(base_url=url, api_key="none")
    model = OpenAIChatModel(request["model"], provider=provider)
    functions = [item["function"] for item in request.get("tools", ())]
    parameters = ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=function["name"],
                description=function["description"],
                parameters_json_schema=function["parameters"],
            )
            for function in functions
        ],
        instruction_parts=[parts.InstructionPart(item["content"]) for item in _system(request)],
    )
    histories: dict[int, list[parts.ModelMessage]] = defaultdict(list)

    async def ask(chat: int, text: str) -> str:
        history = histories[chat]
        history.append(parts.ModelRequest([parts.UserPromptPart(text)]))
        answer = await model_request(
            model, history, model_request_parameters=parameters, instrument=False
        )
        history.append(answer)
        return answer.text or ""

    return ask


def _system(request: Json) -> Sequence[Json]:
    return [item for item in request["messages"] if item["role"] == "system"]


async def _tool(stack: AsyncExitStack, command: Sequence[str]) -> Say:
    """Return what makes a call of a message `call TOOL {json}` on a server of its own."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    parameters = StdioServerParameters(command=command[0], args=list(command[1:]))
    read, write = await stack.enter_async_context(stdio_client(parameters))
    session = await stack.enter_async_context(ClientSession(read, write))
    await session.initialize()
    await session.list_tools()

    async def call(chat: int, text: str) -> str:
        del chat
        _, name, arguments = text.split(" ", 2)
        result = await session.call_tool(name, json.loads(arguments))
        return f"{GOT} {result.content}"

    return call


async def serve(given: argparse.Namespace) -> None:
    async with AsyncExitStack() as stack:
        platform = await _platform(stack, given.url, given.token, library=given.library)
        model = None
        if given.model:
            request = json.loads(given.request)
            model = await _model(stack, given.model, request, library=given.library)
            await model(0, "Hello")
        tool = await _tool(stack, given.server) if given.server else None
        offset, hold = 0, 0
        wanted: dict[int, str] = {}
        sys.stdout.write("connected\n")
        sys.stdout.flush()
        while True:
            for heard in await platform.heard(offset=offset, hold=hold):
                offset = heard.update + 1
                if tool is not None and heard.query is None:
                    wanted[heard.chat] = heard.text
                    await platform.send(heard.chat, heard.text, button=BUTTON)
                elif tool is not None and heard.query is not None:
                    got = await tool(heard.chat, wanted.pop(heard.chat))
                    await platform.answer(heard.query)
                    await platform.send(heard.chat, got)
                elif model is not None:
                    await platform.send(heard.chat, await model(heard.chat, heard.text))
            hold = HOLD_SECONDS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bare_bot", description=__doc__)
    parser.add_argument("url", help="of the fake Telegram")
    parser.add_argument("token")
    parser.add_argument("--library", action="store_true", help="through the libraries, not by HTTP")
    parser.add_argument("--model", default="", help="the URL of a model")
    parser.add_argument("--request", help="the body of a request to ask the model like, as JSON")
    parser.add_argument("--load", default="", help="modules to import besides, by commas")
    parser.add_argument(
        "--server", nargs=argparse.REMAINDER, help="the command of an MCP server; comes last"
    )
    given = parser.parse_args()
    for module in filter(None, given.load.split(",")):
        importlib.import_module(module)
    asyncio.run(serve(given))


if __name__ == "__main__":
    main()
