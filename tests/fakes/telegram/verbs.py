"""The driver's verbs as JSON, for tests that run in another process than the server."""

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any

from tests.fakes.telegram.driver import WAIT_SECONDS, ChatDriver
from tests.fakes.telegram.faults import Fault, Trouble
from tests.fakes.telegram.rates import UNLIMITED, Rates
from tests.fakes.telegram.state import Json, Message, Person, Topic
from tests.fakes.telegram.town import BotDriver, Town

Verb = Callable[[Town, Json], Awaitable[Any]]


async def bot(town: Town, args: Json) -> Any:
    driver = town.bot(**args)
    return {"token": driver.token, "id": driver.state.id, "username": driver.state.username}


async def user(town: Town, args: Json) -> Any:
    name = args.get("username")
    is_bot = bool(args.get("is_bot"))
    return asdict(town.user(args["id"], args["name"], username=name, is_bot=is_bot))


async def private(town: Town, args: Json) -> Any:
    who = town.service.world.people[args["user"]]
    started = bool(args.get("started", True))
    return {"chat": town.private(who, bot=_bot(town, args), started=started).id}


async def group(town: Town, args: Json) -> Any:
    people = _people(town, args)
    chat = town.group(args["title"], *people, chat_id=args.get("chat_id"), bot=_bot(town, args))
    return {"chat": chat.id}


async def supergroup(town: Town, args: Json) -> Any:
    chat = town.supergroup(
        args["title"],
        *_people(town, args),
        chat_id=args.get("chat_id"),
        forum=bool(args.get("forum")),
        username=args.get("username"),
        bot_status=args.get("bot_status", "member"),
        bot=_bot(town, args),
    )
    return {"chat": chat.id}


async def topic(town: Town, args: Json) -> Any:
    opened = await _chat(town, args).open_topic(args["name"])
    return {"topic": opened.topic}


async def say(town: Town, args: Json) -> Any:
    chat = _chat(town, args)
    answered = chat.state.messages[args["reply_to"]] if "reply_to" in args else None
    message = await chat.say(args["text"], by=_by(town, args), reply_to=answered)
    return shown(message)


async def say_as_chat(town: Town, args: Json) -> Any:
    """Write as an anonymous admin of a group; without `stand_in` nobody is named as the sender."""
    stand_in = bool(args.get("stand_in", True))
    return shown(await _chat(town, args).say_as_chat(args["text"], stand_in=stand_in))


async def say_many(town: Town, args: Json) -> Any:
    """Write many messages at once; the answer is their ids."""
    return [(await say(town, message))["id"] for message in args["messages"]]


async def send_file(town: Town, args: Json) -> Any:
    message = await _chat(town, args).send_file(
        args["kind"],
        base64.b64decode(args["data"]),
        name=args.get("name", "file.bin"),
        media_type=args.get("media_type", "application/octet-stream"),
        caption=args.get("caption", ""),
        size=args.get("size"),
        by=_by(town, args),
        album=args.get("album"),
    )
    return shown(message)


async def menu(town: Town, args: Json) -> Any:
    """Return what somebody's menu offers in a chat."""
    return _chat(town, args).menu(by=_by(town, args))


async def edit(town: Town, args: Json) -> Any:
    chat = _chat(town, args)
    await chat.edit(chat.state.messages[args["message"]], args["text"])


async def delete(town: Town, args: Json) -> Any:
    chat = _chat(town, args)
    await chat.delete(chat.state.messages[args["message"]])


async def press(town: Town, args: Json) -> Any:
    chat = _chat(town, args)
    under = chat.state.messages[args["message"]] if "message" in args else None
    pressed = await chat.press(
        args.get("label", ""), by=_by(town, args), message=under, data=args.get("data")
    )
    return {"query": pressed.query.id}


async def query(town: Town, args: Json) -> Any:
    """Return what became of a press; with `seconds` once it was answered."""
    found = (_bot(town, args) or town.bot()).state.queries[args["query"]]
    if "seconds" in args:
        await town.until(lambda: found.answered, seconds=args["seconds"], what="an answer")
    return asdict(found)


async def messages(town: Town, args: Json) -> Any:
    """Return what a chat shows; `gone` adds what was deleted."""
    chat = _chat(town, args)
    found = list(chat.state.messages.values()) if args.get("gone") else chat.messages
    after = args.get("after", 0)
    return [shown(message) for message in found if message.id > after]


async def draft(town: Town, args: Json) -> Any:
    """Return the preview a person sees now; with `contains` once it holds that."""
    chat = _chat(town, args)
    if (wanted := args.get("contains")) is not None:
        seconds = args.get("seconds", WAIT_SECONDS)
        await town.until(lambda: wanted in (chat.draft or ""), seconds=seconds, what="such a draft")
    return chat.draft


async def wait(town: Town, args: Json) -> Any:
    """Return the first message that fits, once there is one."""

    def wanted(message: Message) -> bool:
        return (
            message.by_bot is bool(args.get("by_bot", True))
            and args.get("contains", "") in message.text
            and (args.get("label") is None or args["label"] in message.labels)
            and message.id > args.get("after", 0)
        )

    seconds = args.get("seconds", WAIT_SECONDS)
    return shown(await _chat(town, args).wait_for(wanted, seconds=seconds, what=str(args)))


async def fail(town: Town, args: Json) -> Any:
    trouble = Trouble(args.pop("trouble"))
    town.fail(Fault(trouble=trouble, **args))


async def heal(town: Town, args: Json) -> Any:
    town.heal()


async def rates(town: Town, args: Json) -> Any:
    """Telegram's own rates, or none."""
    town.set_rates(UNLIMITED if args["unlimited"] else Rates())


async def advance(town: Town, args: Json) -> Any:
    town.advance(args["seconds"])


async def down(town: Town, args: Json) -> Any:
    await town.down()


async def up(town: Town, args: Json) -> Any:
    await town.up()


async def block(town: Town, args: Json) -> Any:
    await _chat(town, args).block()


async def unblock(town: Town, args: Json) -> Any:
    await _chat(town, args).unblock()


async def set_bot(town: Town, args: Json) -> Any:
    await _chat(town, args).set_bot(args["status"])


async def migrate(town: Town, args: Json) -> Any:
    return {"chat": (await _chat(town, args).migrate()).id}


async def redeliver(town: Town, args: Json) -> Any:
    driver = _bot(town, args) or town.bot()
    driver.redeliver(last=args.get("last", 1), times=args.get("times", 1))


async def pending(town: Town, args: Json) -> Any:
    return [update.body for update in (_bot(town, args) or town.bot()).pending]


async def calls(town: Town, args: Json) -> Any:
    """Return the calls, all or those of a method or chat; `count` only how many."""
    found = [
        call
        for call in town.calls
        if call.method.lower() == args.get("method", call.method).lower()
        and call.chat == args.get("chat", call.chat)
    ]
    return len(found) if args.get("count") else [asdict(call) for call in found]


async def violations(town: Town, args: Json) -> Any:
    return town.violations


def shown(message: Message) -> Json:
    """A message with its buttons spelt out."""
    return asdict(message) | {"buttons": message.buttons, "labels": message.labels}


def _bot(town: Town, args: Json) -> BotDriver | None:
    return town.bot(args["bot"]) if "bot" in args else None


def _chat(town: Town, args: Json) -> ChatDriver:
    chat = town.chat(args["chat"], bot=_bot(town, args))
    if "topic" not in args:
        return chat
    return chat.in_topic(chat.state.topics.get(args["topic"], Topic(id=args["topic"], name="")))


def _by(town: Town, args: Json) -> Person | None:
    return town.service.world.people[args["by"]] if "by" in args else None


def _people(town: Town, args: Json) -> list[Person]:
    return [town.service.world.people[person] for person in args.get("people", [])]


VERBS: Mapping[str, Verb] = {
    verb.__name__: verb
    for verb in (
        bot,
        user,
        private,
        group,
        supergroup,
        topic,
        say,
        say_as_chat,
        say_many,
        send_file,
        menu,
        edit,
        delete,
        press,
        query,
        messages,
        draft,
        wait,
        fail,
        heal,
        rates,
        advance,
        down,
        up,
        block,
        unblock,
        set_bot,
        migrate,
        redeliver,
        pending,
        calls,
        violations,
    )
}
