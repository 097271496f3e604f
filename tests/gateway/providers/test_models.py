"""Models by name: what is chosen in a chat, beside or without a configured one."""

import pytest

from gateway.domain.errors import ModelRejected
from gateway.domain.model import ModelRequest, UserSaid
from gateway.providers.config import keys_from, parse_model
from gateway.providers.models import open_models
from tests.fakes.chat_completions import chat_completions

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest(system="", history=(UserSaid(text="hello"),))


async def test_a_name_is_asked_of_the_configured_address_and_stands_before_the_configured_model() -> (
    None
):
    async with chat_completions() as fake:
        config = parse_model({"name": "first", "base_url": fake.url, "context_window": 5000})
        async with open_models(config) as models:
            found = models.find("openai:second")
            reply = await found.complete(REQUEST)
        asked = [request.body["model"] for request in fake.requests]

    assert (found.name, found.context_window) == ("openai:second", None)
    assert reply.model == "openai:second"
    assert asked == ["second"]


async def test_without_a_configured_model_any_can_be_found_that_has_its_key() -> None:
    async with open_models(None, keys=keys_from({"OPENAI_API_KEY": "sk-x"})) as models:
        assert models.default is None
        assert models.find("gpt-5").name == "openai:gpt-5"
        with pytest.raises(ModelRejected, match="say who serves"):
            models.find("llama")
    async with open_models(None) as models:
        with pytest.raises(ModelRejected, match="needs a key"):
            models.find("openai:gpt-5")
