import pytest

from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.question import ApproverPolicy, Approvers
from gateway.runtime.access import Access
from gateway.runtime.config import AccessConfig, AccessRule, PersonRole, RuleMatch
from tests.fakes.questions import asked_by

OWNER = Actor(platform="telegram", id="1", name="Ana")
OTHER = Actor(platform="telegram", id="2", name="Ben")
SAME_NAME = Actor(platform="telegram", id="3", name="Ana")
SAME_ID_ELSEWHERE = Actor(platform="slack", id="1", name="Ana")
ADMIN = Actor(platform="telegram", id="9", name="Root")
GUEST = Actor(platform="telegram", id="5", name="Guest")
BOT = Actor(platform="telegram", id="6", name="Bot", is_bot=True)
CHAT = Place(platform="telegram", chat="1", chat_type=ChatType.DM)
LOCAL = Actor(platform="terminal", id="local")


def access(*rules: AccessRule) -> Access:
    return Access(
        AccessConfig(
            admins=frozenset({"telegram:9"}),
            roles={PersonRole.GUEST: frozenset({"telegram:5"})},
            tools=rules,
        ),
        extra_admins=frozenset({"terminal:local"}),
        allowed={"telegram": frozenset({"1", "2", "5", "9"})},
    )


@pytest.mark.parametrize(
    ("actor", "role"),
    [
        (OWNER, PersonRole.USER),
        (ADMIN, PersonRole.ADMIN),
        (LOCAL, PersonRole.ADMIN),
        (GUEST, PersonRole.GUEST),
        (SAME_NAME, PersonRole.STRANGER),
        (SAME_ID_ELSEWHERE, PersonRole.STRANGER),
        (BOT, PersonRole.STRANGER),
        (Actor(platform="telegram", id=""), PersonRole.STRANGER),
    ],
)
def test_people_are_known_by_platform_and_id_alone(actor: Actor, role: PersonRole) -> None:
    assert access().role(actor) is role


def test_without_any_configuration_nobody_may_do_anything() -> None:
    empty = Access(AccessConfig(), allowed={})
    assert not empty.may_talk(OWNER, CHAT)
    assert not empty.may_command(OWNER, "help")
    assert not empty.may_use(OWNER, alias="mcp__a__b", server="a", place=CHAT)
    for policy in ApproverPolicy:
        assert not empty.may_decide(asked_by(OWNER, CHAT, Approvers(policy=policy)), OWNER)


def test_only_known_people_may_talk_and_only_on_their_platform() -> None:
    rules = access()
    assert rules.may_talk(OWNER, CHAT)
    assert rules.may_talk(GUEST, CHAT)
    assert not rules.may_talk(SAME_NAME, CHAT)
    assert not rules.may_talk(LOCAL, CHAT)


@pytest.mark.parametrize(
    ("policy", "ids", "may"),
    [
        (ApproverPolicy.REQUESTER, (), {OWNER, ADMIN, LOCAL}),
        (ApproverPolicy.ADMINS, (), {ADMIN, LOCAL}),
        (ApproverPolicy.LIST, ("telegram:2",), {OTHER, ADMIN, LOCAL}),
    ],
)
def test_exactly_the_named_people_and_admins_may_decide(
    policy: ApproverPolicy, ids: tuple[str, ...], may: set[Actor]
) -> None:
    everybody = {OWNER, OTHER, SAME_NAME, SAME_ID_ELSEWHERE, ADMIN, GUEST, BOT, LOCAL}
    asked = asked_by(OWNER, CHAT, Approvers(policy=policy, ids=ids))
    assert {actor for actor in everybody if access().may_decide(asked, actor)} == may


def test_only_an_admin_may_grant_for_ever() -> None:
    assert access().may_grant_always(ADMIN)
    assert not access().may_grant_always(OWNER)


def test_a_guest_has_only_what_a_rule_gives() -> None:
    rule = AccessRule(
        match=RuleMatch(role=PersonRole.GUEST), allow=("mcp__docs__*",), commands=("help",)
    )
    assert not access().may_command(GUEST, "help")
    assert not access().may_use(GUEST, alias="mcp__docs__find", server="docs", place=CHAT)
    rules = access(rule)
    assert rules.may_command(GUEST, "help")
    assert not rules.may_command(GUEST, "tools")
    assert rules.may_use(GUEST, alias="mcp__docs__find", server="docs", place=CHAT)
    assert not rules.may_use(GUEST, alias="mcp__mail__send", server="mail", place=CHAT)


def test_the_first_rule_that_matches_holds() -> None:
    rules = access(
        AccessRule(match=RuleMatch(channel="telegram:1"), deny=("mcp-stripe",)),
        AccessRule(match=RuleMatch(platform="telegram"), allow=("mcp__none__*",)),
    )
    elsewhere = Place(platform="telegram", chat="2", chat_type=ChatType.DM)
    assert not rules.may_use(OWNER, alias="mcp__stripe__pay", server="stripe", place=CHAT)
    assert rules.may_use(OWNER, alias="mcp__docs__find", server="docs", place=CHAT)
    assert not rules.may_use(OWNER, alias="mcp__docs__find", server="docs", place=elsewhere)


def test_commands_need_their_role_and_aliases_count_as_the_command() -> None:
    rules = access()
    assert rules.may_command(OWNER, "stop")
    assert rules.may_command(OWNER, "allow")
    assert not rules.may_command(OWNER, "reload_mcp")
    assert rules.may_command(ADMIN, "reload_mcp")
    assert not rules.may_command(ADMIN, "frobnicate")
    assert not rules.may_command(SAME_NAME, "help")
