"""Who comes in and what is meant for us, as matrices over one account's door."""

import itertools

import pytest

from gateway.domain.ids import Actor, ChatType, Place
from gateway.runtime.access import Access
from gateway.runtime.access_door import Door, GroupRules
from gateway.runtime.config import AccessConfig, AccessRule, PersonRole, RuleMatch
from tests.fakes.loopback import command, message
from tests.support.requirement import requirement

LISTED = Actor(platform="loop", id="1")
PAIRED = Actor(platform="loop", id="2")
NOBODY = Actor(platform="loop", id="3")
LISTED_BOT = Actor(platform="loop", id="1", is_bot=True)
ADMIN = Actor(platform="loop", id="9")
ANONYMOUS = Actor(platform="loop", id="-5", is_chat=True)
DIRECT = Place(platform="loop", chat="1", chat_type=ChatType.DM)
OURS = Place(platform="loop", chat="-5", chat_type=ChatType.GROUP)
OTHER = Place(platform="loop", chat="-6", chat_type=ChatType.GROUP)
ELSEWHERE = Place(platform="loop", account="b", chat="1", chat_type=ChatType.DM)
THREAD = Place(platform="loop", chat="-5", chat_type=ChatType.TOPIC, thread="7")


def access(door: Door, *rules: AccessRule) -> Access:
    found = Access(
        AccessConfig(admins=frozenset({str(ADMIN)}), tools=rules),
        doors={("loop", ""): door, ("loop", "b"): Door()},
    )
    found.let_in("loop", "", PAIRED.id)
    return found


ADMITTED = {
    (LISTED, DIRECT), (LISTED, OURS), (LISTED, OTHER),
    (PAIRED, DIRECT), (PAIRED, OURS),
    (NOBODY, OURS), (ANONYMOUS, OURS),
    (ADMIN, DIRECT), (ADMIN, OURS), (ADMIN, OTHER), (ADMIN, ELSEWHERE),
}  # fmt: skip


@requirement("access.admission", "case.ap12", "case.t20", "case.t21", "platform.accounts")
@pytest.mark.parametrize(
    ("actor", "place"),
    list(
        itertools.product(
            (LISTED, PAIRED, NOBODY, LISTED_BOT, ADMIN, ANONYMOUS), (DIRECT, OURS, OTHER, ELSEWHERE)
        )
    ),
)
def test_exactly_the_admitted_may_talk(actor: Actor, place: Place) -> None:
    door = Door(people=frozenset({"1"}), groups={"-5": GroupRules()})
    assert access(door).may_talk(actor, place) is ((actor, place) in ADMITTED)


@requirement("access.bots.never_loop")
def test_a_bot_comes_in_where_bots_are_allowed_and_it_is_listed() -> None:
    door = Door(people=frozenset({"1"}), allow_bots=True)
    assert access(door).may_talk(LISTED_BOT, DIRECT)
    assert not access(door).may_talk(Actor(platform="loop", id="3", is_bot=True), DIRECT)


@requirement("access.mention.default", "access.mention.threads")
@pytest.mark.parametrize(
    ("door", "place", "mentioned", "follows", "meant"),
    [
        (Door(), DIRECT, False, False, True),
        (Door(), OURS, False, False, False),
        (Door(), OURS, True, False, True),
        (Door(require_mention=False), OURS, False, False, True),
        (Door(groups={"-5": GroupRules(require_mention=False)}), OURS, False, False, True),
        (Door(groups={"-5": GroupRules(require_mention=False)}), OTHER, False, False, False),
        (Door(require_mention=False, groups={"-5": GroupRules(require_mention=True)}),
         OURS, False, False, False),
        (Door(), THREAD, False, True, True),
        (Door(strict_mention=True), THREAD, False, True, False),
        (Door(strict_mention=True), THREAD, True, True, True),
        (Door(groups={"-5": GroupRules(strict_mention=True)}), THREAD, False, True, False),
    ],
)  # fmt: skip
def test_exactly_what_is_meant_for_us_is_heard(
    door: Door, place: Place, mentioned: bool, follows: bool, meant: bool
) -> None:
    event = message("hi", n=1, place=place)
    event = type(event)(
        place=place,
        native_id="n",
        dedupe="d",
        sender=LISTED,
        sent_at=event.sent_at,
        text="hi",
        mentions_us=mentioned,
    )
    assert door.is_meant(event, follows=follows) is meant


@requirement("access.mention.default")
def test_a_command_of_ours_is_meant_for_us_and_an_unknown_one_is_not() -> None:
    assert Door().is_meant(command("reload_mcp", n=1, place=OURS), follows=False)
    assert not Door().is_meant(command("dance", n=1, place=OURS), follows=False)


@requirement("access.mention.threads")
def test_a_main_thread_is_no_invitation() -> None:
    assert Door().can_be_invited(THREAD)
    assert not Door(main_threads=frozenset({"7"})).can_be_invited(THREAD)
    assert not Door().can_be_invited(OURS)


@requirement("access.rules.first_match")
@pytest.mark.parametrize(
    ("match", "holds"),
    [
        (RuleMatch(), True),
        (RuleMatch(role=PersonRole.USER), True),
        (RuleMatch(role=PersonRole.ADMIN), False),
        (RuleMatch(platform="loop"), True),
        (RuleMatch(platform="slack"), False),
        (RuleMatch(channel="loop:-5"), True),
        (RuleMatch(channel="loop:-5:7"), True),
        (RuleMatch(channel="loop:-6"), False),
        (RuleMatch(role=PersonRole.USER, channel="loop:-6"), False),
    ],
)
def test_a_rule_is_about_exactly_whom_and_where_it_says(match: RuleMatch, holds: bool) -> None:
    rules = access(
        Door(people=frozenset({"1"})),
        AccessRule(match=match, deny=("mcp-pay",), commands=("help",)),
        AccessRule(deny=()),
    )
    may_pay = rules.may_use(LISTED, alias="mcp__pay__now", server="pay", place=THREAD)
    assert may_pay is not holds
    assert rules.may_command(LISTED, "tools", place=THREAD) is not holds
    assert rules.may_use(LISTED, alias="mcp__docs__find", server="docs", place=THREAD)
