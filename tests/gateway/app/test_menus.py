from gateway.app.menus import Offered, menus_of
from gateway.runtime.commands import COMMANDS
from gateway.runtime.config import AccessConfig, AccessRule, PersonRole, RuleMatch
from tests.support.requirement import requirement

TELEGRAM = ("telegram", "")
ADMINS_OWN = {"login", "reload-mcp", "sethome"}


def names(offered: Offered) -> set[str]:
    return {item.name for item in offered}


@requirement("command.one_table")
def test_users_see_what_they_may_use_and_admins_see_all() -> None:
    config = AccessConfig(admins=frozenset({"telegram:1", "slack:U1"}))
    found = menus_of(config, TELEGRAM, groups=["-5"])
    everything = {item.name for item in COMMANDS}

    assert names(found.private) == names(found.groups) == everything - ADMINS_OWN
    assert {person: names(item) for person, item in found.people.items()} == {"1": everything}
    assert {key: names(item) for key, item in found.members.items()} == {("-5", "1"): everything}
    assert found.chats == {}


def test_what_rules_take_away_is_in_no_menu() -> None:
    guest = AccessRule(match=RuleMatch(role=PersonRole.GUEST), commands=("help", "whoami"))
    group = AccessRule(match=RuleMatch(channel="telegram:-5"), commands=("help", "new"))
    config = AccessConfig(roles={PersonRole.GUEST: frozenset({"telegram:3"})}, tools=(guest, group))
    found = menus_of(config, TELEGRAM, groups=["-5", "-6"])

    assert names(found.people["3"]) == {"help", "whoami"}
    assert {chat: names(item) for chat, item in found.chats.items()} == {"-5": {"help", "new"}}
    assert {key: names(item) for key, item in found.members.items()} == {
        ("-5", "3"): {"help", "whoami"},
        ("-6", "3"): {"help", "whoami"},
    }


def test_menus_are_bounded_and_those_of_people_go_before_those_in_groups() -> None:
    config = AccessConfig(admins=frozenset(f"telegram:{n}" for n in range(60)))
    found = menus_of(config, TELEGRAM, groups=["-5"])

    assert len(found.people) == 60
    assert len(found.members) == 40
