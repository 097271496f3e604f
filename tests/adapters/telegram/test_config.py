import pytest

from adapters.account import DmPolicy
from adapters.telegram.config import (
    ALLOWED_VARIABLE,
    TOKEN_VARIABLE,
    Mode,
    ReplyTo,
    parse_telegram,
)
from tests.support.requirement import requirement

TOKEN = "123:secret-words"


def test_nothing_configured_is_no_account() -> None:
    assert parse_telegram(None).accounts == ()
    assert parse_telegram({}).problems == ()


@requirement("platform.tokens")
def test_the_token_comes_from_the_section_or_from_the_environment() -> None:
    written = parse_telegram({"token": TOKEN}, environ={TOKEN_VARIABLE: "9:other"})
    inherited = parse_telegram(None, environ={TOKEN_VARIABLE: TOKEN, ALLOWED_VARIABLE: "1, 2"})

    assert written.accounts[0].token.get_secret_value() == TOKEN
    assert inherited.accounts[0].token.get_secret_value() == TOKEN
    assert inherited.accounts[0].people == {"1", "2"}


@requirement("platform.tokens")
@pytest.mark.parametrize("enabled", [False, "false", "off"])
def test_an_account_that_is_switched_off_is_none(enabled: object) -> None:
    assert parse_telegram({"token": TOKEN, "enabled": enabled}).accounts == ()


def test_the_defaults_are_those_of_the_example() -> None:
    (account,) = parse_telegram({"token": TOKEN}).accounts

    assert account.base_url == "https://api.telegram.org"
    assert account.mode is Mode.POLLING
    assert account.webhook.listen == "127.0.0.1:8443"
    assert account.reply_to is ReplyTo.FIRST
    assert (account.require_mention, account.strict_mention, account.allow_bots) == (
        True,
        False,
        False,
    )
    assert account.streaming


def test_ids_may_be_numbers_and_groups_a_list_or_a_mapping() -> None:
    section = {"token": TOKEN, "allow_from": [111, "222"], "groups": [-1001, "-1002"]}
    (listed,) = parse_telegram(section).accounts
    groups = {-1001: {"require_mention": "no"}, "-1002": None}
    (mapped,) = parse_telegram({"token": TOKEN, "groups": groups, "home_channel": 111}).accounts

    assert listed.people == {"111", "222"}
    assert set(listed.groups) == set(mapped.groups) == {"-1001", "-1002"}
    assert mapped.groups["-1001"].require_mention is False
    assert mapped.home_channel == "111"


@requirement("case.ap11")
def test_everybody_is_admitted_only_when_it_is_said_twice() -> None:
    closed = parse_telegram({"token": TOKEN, "allow_from": ["*"]})
    opened = parse_telegram({"token": TOKEN, "allow_from": ["*"], "open": True})

    assert closed.accounts[0].people == frozenset()
    assert [problem.path for problem in closed.problems] == ["platforms.telegram.allow_from"]
    assert closed.problems[0].severe
    assert opened.accounts[0].people == {"*"}
    assert opened.problems == ()


def test_strangers_are_paired_until_somebody_is_listed() -> None:
    (nobody,) = parse_telegram({"token": TOKEN}).accounts
    (somebody,) = parse_telegram({"token": TOKEN, "allow_from": "111"}).accounts
    (said,) = parse_telegram({"token": TOKEN, "allow_from": "111", "dm_policy": "pair"}).accounts

    assert [item.strangers for item in (nobody, somebody, said)] == [
        DmPolicy.PAIR,
        DmPolicy.IGNORE,
        DmPolicy.PAIR,
    ]


@requirement("platform.telegram.webhook")
def test_a_webhook_without_a_secret_is_refused_with_the_reason() -> None:
    found = parse_telegram({"token": TOKEN, "mode": "webhook", "webhook": {"url": "https://x"}})

    assert "secret is missing" in found.accounts[0].refusal
    assert [problem.path for problem in found.problems] == ["platforms.telegram.webhook.secret"]


@requirement("platform.accounts")
def test_several_accounts_share_what_they_do_not_say_themselves() -> None:
    section = {
        "base_url": "http://127.0.0.1:1/",
        "allow_from": ["1"],
        "accounts": {"work": {"token": TOKEN}, "home": {"token": "9:x", "allow_from": ["2"]},
                     "off": {"token": "8:x", "enabled": False}, "none": {}},
    }  # fmt: skip

    accounts = parse_telegram(section, environ={}).accounts

    assert [account.name for account in accounts] == ["work", "home"]
    assert [sorted(account.people) for account in accounts] == [["1"], ["2"]]
    assert {account.base_url for account in accounts} == {"http://127.0.0.1:1"}


def test_what_cannot_be_read_is_named_without_its_value_and_admits_nobody() -> None:
    section = {
        "token": TOKEN,
        "allow_from": {"a": 1},
        "mode": "telepathy",
        "base_url": "ftp://secret-words",
        "webhook": {"listen": "nowhere"},
        "reply_to": False,
    }

    found = parse_telegram(section)

    assert {problem.path.removeprefix("platforms.telegram.") for problem in found.problems} == {
        "allow_from",
        "mode",
        "base_url",
        "webhook.listen",
    }
    assert "secret-words" not in "".join(problem.message for problem in found.problems)
    assert found.accounts[0].people == frozenset()
    assert found.accounts[0].reply_to is ReplyTo.OFF


@pytest.mark.parametrize("raw", [["list"], "text", 5])
def test_a_section_of_another_shape_is_a_problem_and_no_account(raw: object) -> None:
    found = parse_telegram(raw)

    assert found.accounts == ()
    assert len(found.problems) == 1


@requirement("threat.s13")
def test_secrets_are_not_shown() -> None:
    section = {"token": TOKEN, "webhook": {"secret": "hook-secret"}}

    shown = repr(parse_telegram(section))

    assert "secret-words" not in shown
    assert "hook-secret" not in shown
