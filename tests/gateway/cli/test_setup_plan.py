from collections.abc import Mapping

import pytest

from gateway.app.setups import SETUPS
from gateway.cli.setup_plan import Plan, Present, Wanted, planned
from gateway.config.writer import REMOVED
from gateway.providers.config import parse_model
from tests.support.requirement import requirement

AT = ("platforms", "telegram")
NEW = Wanted(secrets={"token": "1:new"})


def plan(
    document: Mapping[str, object], wanted: Wanted = NEW, env: Mapping[str, str] | None = None
) -> Plan:
    present = Present(document=document, env=env or {}, platform="telegram")
    return planned(present, SETUPS["telegram"], wanted)


def telegram(**section: object) -> Mapping[str, object]:
    return {"platforms": {"telegram": {"token": "${TELEGRAM_BOT_TOKEN}", **section}}}


@requirement("cli.gateway.setup_install")
def test_a_token_goes_to_env_and_the_configuration_names_its_variable() -> None:
    found = plan({})

    assert found.variables == {"TELEGRAM_BOT_TOKEN": "1:new"}
    assert found.changes == {(*AT, "token"): "${TELEGRAM_BOT_TOKEN}"}
    assert found.replaces == []
    assert "1:new" not in repr(found)


def test_a_token_that_stands_in_the_configuration_is_moved_when_somebody_agrees() -> None:
    found = plan({"platforms": {"telegram": {"token": "1:old"}}})

    assert found.replaces == ["platforms.telegram.token"]


def test_people_are_added_and_none_is_taken_away() -> None:
    document = {**telegram(allow_from="5, 6"), "access": {"admins": ["slack:U1"]}}
    found = plan(document, Wanted(secrets=NEW.secrets, allow=["7"], admins=["5", "8"]))

    assert found.changes == {
        (*AT, "allow_from"): ["5", "6", "7", "8"],
        ("access", "admins"): ["slack:U1", "telegram:5", "telegram:8"],
    }
    assert found.replaces == []


@pytest.mark.parametrize("off", [False, "off", "No"])
def test_a_platform_that_was_switched_off_is_switched_on_when_somebody_agrees(off: object) -> None:
    found = plan(telegram(enabled=off))

    assert found.changes == {(*AT, "enabled"): True}
    assert found.replaces == ["platforms.telegram.enabled"]


@pytest.mark.parametrize(
    ("now", "changes", "replaces"),
    [
        (None, {("model",): "openai:m"}, []),
        ("openai:m", {}, []),
        ({"provider": "openai", "name": "m", "base_url": "http://h"}, {}, []),
        ("openai:other", {("model",): "openai:m"}, ["model"]),
        ("frob", {("model",): "openai:m"}, ["model"]),
    ],
)
def test_a_model_that_is_configured_is_only_replaced_by_another(
    now: object, changes: object, replaces: list[str]
) -> None:
    wanted = Wanted(secrets={"token": "1:new"}, model=parse_model("openai:m"), key=("K", "sk"))
    found = plan({**telegram(), "model": now}, wanted, env={"TELEGRAM_BOT_TOKEN": "1:new"})

    assert found.changes == changes
    assert found.replaces == replaces
    assert found.variables == {"K": "sk"}


def test_no_model_takes_out_the_one_there_is() -> None:
    wanted = Wanted(secrets=NEW.secrets, no_model=True)

    assert plan(telegram(), wanted).changes == {}
    assert plan({**telegram(), "model": "openai:m"}, wanted).changes == {("model",): REMOVED}
