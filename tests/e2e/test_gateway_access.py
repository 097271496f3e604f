"""Who comes in through real processes: pairing, groups, roles, bots, rates, and several accounts."""

import json
import re
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import closing
from typing import Any, Final

import pytest

from tests.e2e.house import House
from tests.e2e.on_telegram import ANNA, UNHURRIED, telegram_with_anna
from tests.fakes.telegram.process import TelegramProcess
from tests.support.chat import hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

BEN: Final = 222
GROUP: Final = -1001
CODE: Final = re.compile(r"[A-Z2-9]{8}")
SECOND: Final = "222222:second-token-that-is-no-secret"
HELLO: Final = "@hermes_test_bot hello"


@pytest.fixture
def town() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        running.do("user", id=BEN, name="Ben")
        running.do("private", user=BEN)
        running.do(
            "supergroup",
            title="Home",
            people=[ANNA, BEN],
            chat_id=GROUP,
            bot_status="administrator",
        )
        yield running


def configure(
    house: House,
    town: TelegramProcess,
    access: Mapping[str, object] | None = None,
    **account: object,
) -> None:
    token = town.do("bot")["token"]
    telegram = {"token": token, "base_url": town.base_url, **account}
    house.configure(platforms={"telegram": telegram}, access={**UNHURRIED, **(access or {})})


def say(town: TelegramProcess, chat: int, text: str, **more: object) -> int:
    number: int = town.do("say", chat=chat, text=text, **more)["id"]
    return number


def answer(town: TelegramProcess, chat: int, after: int, words: str = "", **more: object) -> str:
    """Wait for what the bot says in a chat after a message."""
    return str(town.do("wait", chat=chat, contains=words, after=after, seconds=30, **more)["text"])


def said_by_bot(town: TelegramProcess, chat: int, after: int = 0) -> list[str]:
    found = town.do("messages", chat=chat, after=after)
    return [item["text"] for item in found if item["by_bot"]]


def rows(house: House, sql: str) -> list[tuple[Any, ...]]:
    uri = f"file:{house.path / 'state.db'}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as database:
        return database.execute(sql).fetchall()


def settled(town: TelegramProcess) -> None:
    """Let everything that was written before have its effect: updates are read in their order."""
    after = say(town, ANNA, "are you there?")
    answer(town, ANNA, after, "You said: are you there?")


@requirement("access.pairing.code", "case.ap13", "case.ap12", "design.pairing.approve")
def test_a_stranger_is_let_in_by_a_code_to_direct_messages_and_out_again(
    house: House, town: TelegramProcess
) -> None:
    configure(house, town, allow_from=[str(ANNA)], dm_policy="pair")
    with Gateway(house.path) as gateway:
        first, *_ = [say(town, BEN, f"let me in {n}") for n in range(20)]
        offer = answer(town, BEN, first, "pairing code")
        settled(town)
        assert said_by_bot(town, BEN) == [offer]
        (code,) = set(CODE.findall(offer))
        assert code not in house.log + gateway.stderr
        assert "let me in" not in house.log + gateway.stderr
        ((kept, state),) = rows(house, "SELECT code_hash, state FROM pairing")
        assert (code in kept, state) == (False, "pending")

        assert hermes(house.path, "pairing", "approve", "WRONGCDE").returncode == 3
        done = hermes(house.path, "pairing", "approve", code.lower())
        assert (done.returncode, done.stderr) == (
            0,
            "telegram:222 (Ben) may now write to the bot in direct messages\n",
        )
        answer(town, BEN, first, "You are paired")
        answer(town, BEN, say(town, BEN, "thanks"), "You said: thanks")
        ignored = say(town, GROUP, HELLO, by=BEN)
        settled(town)
        assert said_by_bot(town, GROUP, ignored) == []

        listed = json.loads(hermes(house.path, "pairing", "list", "--json").stdout)["pairings"]
        assert [(item["user_id"], item["state"]) for item in listed] == [("222", "approved")]
        assert gateway.end() == 0
    with Gateway(house.path) as gateway:
        answer(town, BEN, say(town, BEN, "still here"), "You said: still here")
        assert hermes(house.path, "pairing", "revoke", "telegram", "222").returncode == 0
        late = say(town, BEN, "and now?")
        settled(town)
        assert said_by_bot(town, BEN, late) == []
        assert hermes(house.path, "pairing", "revoke", "222").returncode == 3
        assert gateway.end() == 0


@requirement("access.pairing.code")
def test_a_code_is_approved_while_no_gateway_runs(house: House, town: TelegramProcess) -> None:
    configure(house, town)
    with Gateway(house.path) as gateway:
        offer = answer(town, BEN, say(town, BEN, "hi"), "pairing code")
        assert gateway.end() == 0
    (code,) = set(CODE.findall(offer))
    assert hermes(house.path, "pairing", "approve", "slack", code).returncode == 3
    done = hermes(house.path, "pairing", "approve", "telegram", code, "--json")
    assert json.loads(done.stdout)["pairing"]["state"] == "approved"
    with Gateway(house.path) as gateway:
        answer(town, BEN, say(town, BEN, "me again"), "You said: me again")
        assert gateway.end() == 0


@requirement("access.strangers_silence", "access.admission", "case.t21", "threat.s25")
def test_strangers_get_silence_in_groups_and_where_people_are_listed(
    house: House, town: TelegramProcess
) -> None:
    configure(house, town, allow_from=[str(ANNA)])
    with Gateway(house.path) as gateway:
        settled(town)
        count = "SELECT (SELECT count(*) FROM inbound) + (SELECT count(*) FROM chat)"
        before = rows(house, count)
        sent = [say(town, chat, HELLO, by=BEN) for chat in (BEN, GROUP) for _ in range(30)]
        listed = say(town, GROUP, HELLO, by=ANNA)
        answer(town, GROUP, listed, "You said")
        assert said_by_bot(town, BEN, sent[0]) == []
        assert len(said_by_bot(town, GROUP)) == 1
        # Anna's message and her group are what is new.
        assert rows(house, count) == [(before[0][0] + 2,)]
        assert "of telegram:222 in agent:main:telegram:dm:222: stranger" in house.log
        assert "hello" not in house.log
        assert gateway.end() == 0


@requirement("access.admission", "access.mention.default")
def test_whoever_is_in_a_listed_group_is_answered_there_when_they_call_the_bot(
    house: House, town: TelegramProcess
) -> None:
    configure(house, town, groups=[GROUP], dm_policy="ignore", access={"admins": ["telegram:111"]})
    with Gateway(house.path) as gateway:
        quiet = say(town, GROUP, "hello everybody", by=BEN)
        called = say(town, GROUP, HELLO, by=BEN)
        said = answer(town, GROUP, called, "You said")
        assert said_by_bot(town, GROUP, quiet) == [said]
        reply = town.do("wait", chat=GROUP, contains="You said", after=called)["id"]
        again = say(town, GROUP, "and more", by=BEN, reply_to=reply)
        answer(town, GROUP, again, "You said: and more")
        alone = say(town, BEN, "in private")
        settled(town)
        assert said_by_bot(town, BEN, alone) == []
        assert gateway.end() == 0


@requirement("case.t28")
def test_a_command_of_an_admin_in_a_group_keeps_its_sender_and_rights(
    house: House, town: TelegramProcess
) -> None:
    configure(house, town, groups=[GROUP], access={"admins": [f"telegram:{ANNA}"]})
    with Gateway(house.path) as gateway:
        answer(town, GROUP, say(town, GROUP, "/reload_mcp", by=ANNA), "Reloaded in")
        refused = answer(town, GROUP, say(town, GROUP, "/reload_mcp", by=BEN), "You may not use")
        assert "/reload-mcp" in refused
        assert gateway.end() == 0


@requirement("access.mention.threads", "case.db9", "conversation.participant")
def test_a_topic_the_bot_was_called_into_is_followed_and_a_strict_one_is_not(
    house: House, town: TelegramProcess
) -> None:
    forum = -1002
    town.do("supergroup", title="Forum", people=[ANNA, BEN], chat_id=forum, forum=True,
            bot_status="administrator")  # fmt: skip
    first, second = (town.do("topic", chat=forum, name=name)["topic"] for name in "ab")
    groups = {str(forum): {}, str(GROUP): {"require_mention": False}}
    configure(house, town, groups=groups, access={"admins": [f"telegram:{ANNA}"]})

    def talk(topic: int, text: str) -> int:
        return say(town, forum, text, topic=topic, by=BEN)

    with Gateway(house.path) as gateway:
        for topic in (first, second):
            talk(topic, "not for the bot")
            answer(town, forum, talk(topic, HELLO), "You said", topic=topic)
        answer(town, forum, talk(first, "more"), "[Ben] more", topic=first)
        answer(town, GROUP, say(town, GROUP, "hi", by=BEN), "You said: hi")
        answer(town, GROUP, say(town, GROUP, "ho", by=ANNA), "You said: ho")
        assert gateway.end() == 0
    keys = {key for (key,) in rows(house, "SELECT session_key FROM conversation")}
    assert keys == {
        f"agent:main:telegram:topic:{forum}:{first}",
        f"agent:main:telegram:topic:{forum}:{second}",
        f"agent:main:telegram:group:{GROUP}:{BEN}",
        f"agent:main:telegram:group:{GROUP}:{ANNA}",
    }
    with Gateway(house.path) as gateway:
        answer(town, forum, talk(first, "after a restart"), "[Ben] after", topic=first)
        assert gateway.end() == 0
    configure(house, town, groups=groups, strict_mention=True, access={"admins": ["telegram:111"]})
    with Gateway(house.path) as gateway:
        ignored = talk(first, "no mention")
        settled(town)
        assert said_by_bot(town, forum, ignored) == []
        assert gateway.end() == 0


@requirement("case.t20")
def test_an_anonymous_admin_of_a_listed_group_is_answered_and_cannot_approve(
    house: House, town: TelegramProcess
) -> None:
    house.serve()
    configure(
        house,
        town,
        access={"admins": [f"telegram:{ANNA}"]},
        groups={str(GROUP): {"require_mention": False}},
    )
    with Gateway(house.path) as gateway:
        for stand_in in (True, False):
            asked = town.do("say_as_chat", chat=GROUP, text="hi", stand_in=stand_in)["id"]
            answer(town, GROUP, asked, "You said: hi")
        call = f"call write {json.dumps({'text': 'anonymous'})}"
        asked = town.do("say_as_chat", chat=GROUP, text=call)["id"]
        card = town.do("wait", chat=GROUP, label="Allow once", after=asked)["id"]
        (short,) = rows(house, "SELECT short FROM question WHERE state = 'pending'")[0]
        tried = town.do("say_as_chat", chat=GROUP, text=f"/approve {short}")["id"]
        assert "can decide this" in answer(town, GROUP, tried, "can decide this")
        query = town.do("press", chat=GROUP, label="Allow once", message=card, by=BEN)["query"]
        assert "can decide this" in town.do("query", query=query, seconds=20)["text"]
        assert house.runs == []
        town.do("press", chat=GROUP, label="Allow once", message=card, by=ANNA)
        answer(town, GROUP, tried, "Got: 1")
        assert gateway.end() == 0
    assert house.runs == ["anonymous"]


@requirement("access.guest", "access.rules.in_dispatch", "access.rules.first_match")
def test_a_guest_is_refused_a_tool_that_the_model_or_they_call(
    house: House, town: TelegramProcess
) -> None:
    house.serve(trust="full")
    rule = {"match": {"role": "guest"}, "allow": ["mcp__docs__*"], "commands": ["help", "call"]}
    roles = {"admins": [f"telegram:{ANNA}"], "roles": {"guest": ["telegram:222"]}}
    configure(house, town, access={**roles, "tools": [rule]})
    arguments = json.dumps({"text": "no"})
    with Gateway(house.path) as gateway:
        for text in (f"call write {arguments}", f"direct write {arguments}",
                     f"/call mcp__box__write {arguments}"):  # fmt: skip
            answer(town, BEN, say(town, BEN, text), "may not be used by this person here")
        answer(town, BEN, say(town, BEN, "/tools"), "You may not use /tools")
        listed = answer(town, BEN, say(town, BEN, "/help"), "/help")
        assert "/call" in listed
        assert "/status" not in listed
        arguments = json.dumps({"text": "yes"})
        answer(town, ANNA, say(town, ANNA, f"call write {arguments}"), "Got: 1")
        assert gateway.end() == 0
    assert house.runs == ["yes"]


@requirement("access.bots.never_loop")
def test_other_bots_are_ignored_unless_allowed_and_cut_off_when_only_they_talk(
    house: House, town: TelegramProcess
) -> None:
    robot = 999
    town.do("user", id=robot, name="Robot", is_bot=True)
    groups = {str(GROUP): {"require_mention": False}}
    admins: dict[str, object] = {"admins": [f"telegram:{ANNA}"]}
    configure(house, town, admins, groups=groups)
    with Gateway(house.path) as gateway:
        ignored = say(town, GROUP, "beep", by=robot)
        settled(town)
        assert said_by_bot(town, GROUP, ignored) == []
        assert gateway.end() == 0
    configure(house, town, admins, groups=groups, allow_bots=True)
    with Gateway(house.path) as gateway:
        for n in range(5):
            answer(town, GROUP, say(town, GROUP, f"beep {n}", by=robot), f"You said: beep {n}")
        cut = say(town, GROUP, "beep more", by=robot)
        settled(town)
        assert said_by_bot(town, GROUP, cut) == []
        answer(town, GROUP, say(town, GROUP, "go on", by=ANNA), "You said: go on")
        answer(town, GROUP, say(town, GROUP, "beep again", by=robot), "You said: beep again")
        assert gateway.end() == 0


@requirement("access.rate_quota")
def test_what_is_over_a_rate_waits_and_is_answered_together_and_is_told_once(
    house: House, town: TelegramProcess
) -> None:
    rate = {"rate": {"user_per_minute": 12, "chat_per_minute": 0}}
    configure(house, town, rate, allow_from=[str(ANNA)])
    with Gateway(house.path) as gateway:
        for n in range(12):
            answer(town, ANNA, say(town, ANNA, f"m{n}"), f"You said: m{n}")
        over = say(town, ANNA, "over 1")
        say(town, ANNA, "over 2")
        answer(town, ANNA, over, "That is a lot at once")
        answer(town, ANNA, over, "You said: over 2")
        told = [text for text in said_by_bot(town, ANNA) if "a lot at once" in text]
        assert len(told) == 1
        assert gateway.end() == 0
    assert rows(house, "SELECT count(*) FROM message WHERE body LIKE 'over%'") == [(2,)]


@requirement("platform.accounts", "case.t5", "case.db9")
def test_two_bots_run_side_by_side_each_with_its_own_people_sessions_and_cards(
    house: House, town: TelegramProcess
) -> None:
    house.serve()
    town.do("bot", token=SECOND, username="second_bot")
    town.do("private", user=ANNA, bot=SECOND)
    town.do("private", user=BEN, bot=SECOND)
    accounts = {
        "work": {"token": town.do("bot")["token"], "allow_from": [str(ANNA)]},
        "home": {"token": SECOND, "allow_from": [str(ANNA), str(BEN)]},
        "lost": {"token": "3:unknown"},
    }
    telegram = {"base_url": town.base_url, "accounts": accounts}
    house.configure(platforms={"telegram": telegram}, access=UNHURRIED)
    call = f"call write {json.dumps({'text': 'by the second'})}"
    with Gateway(house.path) as gateway:
        answer(town, ANNA, say(town, ANNA, "hi work"), "You said: hi work")
        asked = say(town, ANNA, call, bot=SECOND)
        card = town.do("wait", chat=ANNA, bot=SECOND, label="Allow once", after=asked)["id"]
        town.do("press", chat=ANNA, bot=SECOND, label="Allow once", message=card)
        answer(town, ANNA, asked, "Got: 1", bot=SECOND)
        stranger = say(town, BEN, "hi work")
        answer(town, BEN, say(town, BEN, "hi home", bot=SECOND), "You said: hi home", bot=SECOND)
        settled(town)
        assert said_by_bot(town, BEN, stranger) == []

        def states() -> dict[str, str]:
            status = json.loads(hermes(house.path, "gateway", "status", "--json").stdout)
            return {item["account"]: item["state"] for item in status["platforms"]}

        expected = {"work": "connected", "home": "connected", "lost": "unauthorized"}
        eventually(lambda: states() == expected, what="each account's own state")
        assert gateway.end() == 0
    assert house.runs == ["by the second"]
    keys = {key for (key,) in rows(house, "SELECT session_key FROM conversation")}
    assert keys == {
        "agent:main:telegram@work:dm:111",
        "agent:main:telegram@home:dm:111",
        "agent:main:telegram@home:dm:222",
    }


@requirement("case.ap11")
def test_everybody_is_let_in_only_when_it_is_said_twice(
    house: House, town: TelegramProcess
) -> None:
    configure(house, town, access={"admins": [f"telegram:{ANNA}"]}, allow_from=["*"])
    checked = hermes(house.path, "config", "check", "--json")
    assert checked.returncode == 1
    (error,) = json.loads(checked.stdout)["errors"]
    assert error["path"] == "platforms.telegram.allow_from"
    with Gateway(house.path) as gateway:
        refused = say(town, BEN, "anybody?")
        settled(town)
        assert said_by_bot(town, BEN, refused) == []
        assert gateway.end() == 0
    configure(house, town, allow_from=["*"], open=True)
    with Gateway(house.path) as gateway:
        answer(town, BEN, say(town, BEN, "now?"), "You said: now?")
        assert gateway.end() == 0
