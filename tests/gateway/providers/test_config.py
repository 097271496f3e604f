import os
import subprocess
import sys

import pytest
from pydantic import SecretStr, ValidationError

from gateway.domain.errors import ConfigError
from gateway.providers.config import (
    ModelConfig,
    ProviderName,
    keys_from,
    parse_model,
    split_name,
)
from gateway.providers.models import check_model, open_model
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


@requirement("model.config")
@pytest.mark.parametrize(
    ("raw", "label"),
    [
        ("openai:gpt-5-mini", "openai:gpt-5-mini"),
        ("openai/gpt-5-mini", "openai:gpt-5-mini"),
        ("gpt-5-mini", "openai:gpt-5-mini"),
        ("claude-sonnet-4-6", "anthropic:claude-sonnet-4-6"),
        ("google:gemini-3-pro", "google:gemini-3-pro"),
        ("openai-responses:gpt-5", "openai-responses:gpt-5"),
        ({"provider": "openai", "name": "llama3:8b"}, "openai:llama3:8b"),
        ({"name": "anthropic/claude-x"}, "anthropic:claude-x"),
        ({"name": "meta-llama/llama-3", "base_url": "http://h/v1"}, "openai:meta-llama/llama-3"),
    ],
)
def test_a_model_is_a_name_or_a_mapping(raw: object, label: str) -> None:
    assert parse_model(raw).label == label


@requirement("model.config")
def test_a_mapping_gives_address_key_limits_and_fallbacks() -> None:
    config = parse_model(
        {
            "provider": "openai",
            "name": "qwen3",
            "base_url": "http://127.0.0.1:11434/v1/",
            "api_key": " k-1 ",
            "max_tokens": "4096",
            "temperature": 0.2,
            "context_window": 32_768,
            "fallbacks": ["anthropic:claude-x", {"provider": "google", "name": "gemini-x"}],
        }
    )

    assert config.url == "http://127.0.0.1:11434/v1"
    assert config.api_key == SecretStr("k-1")
    assert (config.max_tokens, config.temperature, config.context_window) == (4096, 0.2, 32_768)
    assert [fallback.label for fallback in config.fallbacks] == [
        "anthropic:claude-x",
        "google:gemini-x",
    ]


@pytest.mark.parametrize(
    ("raw", "path", "words"),
    [
        ("opnai:gpt-5", "model", "did you mean openai?"),
        ({"provider": "antropic", "name": "c"}, "model.provider", "did you mean anthropic?"),
        ("ollama:llama3", "model", "http://127.0.0.1:11434/v1"),
        ("llama3", "model", "provider:name"),
        ({"provider": "openai"}, "model.name", "required"),
        ({"name": ""}, "model", "provider:name"),
        (7, "model", "dictionary"),
        ({"provider": "openai", "name": "m", "base_url": "ftp://h"}, "model.base_url", "http://"),
        ({"provider": "openai", "name": "m", "base_url": "${X}/v1"}, "model.base_url", "not set"),
        ({"provider": "openai", "name": "m", "max_tokens": 0}, "model.max_tokens", "greater"),
        (
            {"provider": "openai", "name": "m", "fallbacks": ["nope:x"]},
            "model.fallbacks.0",
            "known",
        ),
    ],
)
def test_a_wrong_section_names_the_place_and_the_remedy(raw: object, path: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_model(raw)

    assert caught.value.path == path
    assert words in caught.value.problem


def test_no_error_shows_a_key() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_model({"provider": "openai", "name": "m", "api_key": "sk-se\ncret"})
    assert "cret" not in str(caught.value)

    with pytest.raises(ValidationError) as raw:
        ModelConfig.model_validate(
            {"provider": "openai", "name": "m", "base_url": "http://u:sk-secret@h/v1"}
        )
    assert "sk-secret" not in str(raw.value)
    assert "sk-secret" not in repr(
        parse_model({"provider": "openai", "name": "m", "api_key": "sk-secret"})
    )


@pytest.mark.parametrize("text", ["", "  ", "${OPENAI_API_KEY}"])
def test_a_key_that_is_empty_or_unresolved_counts_as_unset(text: str) -> None:
    assert parse_model({"provider": "openai", "name": "m", "api_key": text}).api_key is None


def test_keys_of_the_environment_go_to_their_own_service_only() -> None:
    keys = keys_from({"OPENAI_API_KEY": "sk-1", "GEMINI_API_KEY": "g-1", "ANTHROPIC_API_KEY": ""})
    config = parse_model(
        {
            "provider": "openai",
            "name": "qwen3",
            "base_url": "http://127.0.0.1:11434/v1",
            "fallbacks": [
                "openai:gpt-5",
                "google:gemini-x",
                "anthropic:claude-x",
                {"provider": "openai", "name": "own", "api_key": "sk-2"},
            ],
        }
    ).with_keys(keys)

    assert config.api_key is None
    found = [fallback.api_key for fallback in config.fallbacks]
    assert found == [SecretStr("sk-1"), SecretStr("g-1"), None, SecretStr("sk-2")]


@pytest.mark.parametrize("spelling", ["openai:gpt-5", "openai/gpt-5", "gpt-5"])
def test_a_model_is_recognised_in_three_spellings(spelling: str) -> None:
    config = parse_model("openai:gpt-5")

    assert config.called(spelling)
    assert not config.called("anthropic:gpt-5")
    assert not config.called("gpt-5-mini")


def test_names_with_marks_of_their_own_stay_whole() -> None:
    assert split_name("llama3:8b") == (None, "llama3:8b")
    assert split_name("openai/meta-llama/llama-3:free") == (
        ProviderName.OPENAI,
        "meta-llama/llama-3:free",
    )


def test_a_missing_key_is_found_before_anything_is_asked() -> None:
    with pytest.raises(ConfigError, match=r"model\.api_key.*OPENAI_API_KEY"):
        check_model(parse_model("openai:gpt-5"))


def test_a_service_of_ones_own_needs_no_key() -> None:
    check_model(parse_model({"provider": "openai", "name": "m", "base_url": "http://h/v1"}))


async def test_a_missing_package_says_what_to_install() -> None:
    config = parse_model(
        {
            "provider": "openai",
            "name": "m",
            "base_url": "http://h/v1",
            "fallbacks": [{"provider": "anthropic", "name": "c", "api_key": "k"}],
        }
    )
    with pytest.raises(ConfigError) as caught:
        async with open_model(config):
            pass

    assert caught.value.path == "model.fallbacks.0.provider"
    assert "pip install 'hermes-gateway[anthropic]'" in caught.value.problem


@requirement("model.lazy_import")
@pytest.mark.parametrize(
    "module", ["gateway.providers.models", "gateway.providers.guided", "gateway.providers.config"]
)
def test_no_provider_package_is_loaded_before_a_model_is_asked(module: str) -> None:
    code = (
        f"import sys, asyncio, {module}\n"
        "from gateway.providers.config import parse_model\n"
        "from gateway.providers.models import open_model\n"
        "section = {'provider': 'openai', 'name': 'm', 'base_url': 'http://127.0.0.1:9/v1'}\n"
        "async def main():\n"
        "    async with open_model(parse_model(section)) as model:\n"
        "        assert model.name == 'openai:m'\n"
        "asyncio.run(main())\n"
        "heavy = {'pydantic_ai', 'openai', 'anthropic', 'google.genai', 'httpx', 'httpx2'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.getcwd()}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )

    assert ran.stdout.strip() == "[]"
