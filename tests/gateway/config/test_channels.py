from pathlib import Path

import pytest

from gateway.config.channels import ChannelSettings, parse_channels
from gateway.config.home import Home
from gateway.config.load import check, load
from gateway.providers.config import keys_from
from tests.support.requirement import requirement

KEYS = keys_from({"OPENAI_API_KEY": "sk-canary"})


@requirement("platform.channel_overrides")
def test_channels_have_their_model_with_its_key_and_their_prompt() -> None:
    overrides = {-1001: {"model": "openai:gpt-5", "system_prompt": "Be kind."}}
    found, findings = parse_channels({"telegram": {"channel_overrides": overrides}}, keys=KEYS)

    assert findings == ()
    settings = found["telegram", ""]["-1001"]
    assert settings.model is not None
    assert settings.model.label == "openai:gpt-5"
    assert settings.model.api_key is not None
    assert settings.system_prompt == "Be kind."
    assert "canary" not in repr(settings)


def test_an_account_has_the_overrides_of_its_section_or_its_own() -> None:
    general = {"1": {"system_prompt": "all"}}
    own = {"1": {"system_prompt": "mine"}}
    section = {
        "channel_overrides": general,
        "accounts": {"work": {}, "home": {"channel_overrides": own}},
    }
    found, findings = parse_channels({"telegram": section}, keys=KEYS)

    assert findings == ()
    assert {account: item["1"].system_prompt for (_, account), item in found.items()} == {
        "": "all",
        "work": "all",
        "home": "mine",
    }


@pytest.mark.parametrize(
    ("overrides", "path", "words"),
    [
        ([1], "", "must map chats"),
        ({"5": "gpt"}, ".5", "must be a mapping"),
        ({"5": {"model": "opnai:gpt-5"}}, ".5.model", "did you mean openai"),
        ({"5": {"model": {"provider": "anthropic", "name": "x"}}}, ".5.model.api_key", "a key"),
        ({"5": {"system_prompt": 3}}, ".5.system_prompt", "must be text"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(overrides: object, path: str, words: str) -> None:
    raw: dict[str, object] = {"telegram": {"channel_overrides": overrides, "accounts": {"a": {}}}}
    found, findings = parse_channels(raw, keys=KEYS)

    (finding,) = findings
    assert finding.path == f"platforms.telegram.channel_overrides{path}"
    assert words in finding.message
    assert all(item["5"].model is None for item in found.values())
    if ".model" in path:
        assert found["telegram", ""]["5"].broken


def test_a_broken_override_stops_no_start_and_an_unset_key_is_none(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.config_file.write_text(
        "platforms:\n  telegram:\n    channel_overrides:\n      -5:\n"
        "        model: {provider: openai, name: m, api_key: '${NOBODY_SET_IT}'}\n"
    )

    found = load(home, environ={}).config.channels["telegram", ""]["-5"]

    assert (found.model, found.system_prompt) == (None, None)
    assert "needs a key" in found.broken
    errors = [item.path for item in check(home, environ={}).errors]
    assert errors == ["platforms.telegram.channel_overrides.-5.model.api_key"]


def test_nothing_different_is_nothing() -> None:
    raws: tuple[object, ...] = (
        None,
        (),
        {"telegram": None},
        {"telegram": {"channel_overrides": {"5": None}}},
    )
    for raw in raws:
        assert parse_channels(raw, keys=KEYS) == ({}, ())
    found, _ = parse_channels({"telegram": {"channel_overrides": {"5": {}}}}, keys=KEYS)
    assert found == {("telegram", ""): {"5": ChannelSettings()}}
