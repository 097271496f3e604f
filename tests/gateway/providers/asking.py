"""Shared by these tests: requests, and a configured model in front of a scripted service."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import SecretStr

from gateway.domain.model import FunctionSpec, ModelMessage, ModelReply, ModelRequest, UserSaid
from gateway.ports import ModelProvider
from gateway.providers.config import ModelConfig, ProviderName, Timeouts
from gateway.providers.models import open_model
from tests.fakes.chat_completions import FakeModels, chat_completions
from tests.fakes.responses_api import responses_api

SECRET = "sk-test-0123456789abcdef"

LOOK_UP = FunctionSpec(
    name="look_up",
    description="Looks something up.",
    parameters={
        "type": "object",
        "properties": {"day": {"type": "string", "format": "date"}},
        "required": ["day"],
    },
)


def request(*history: ModelMessage, system: str = "", model: str = "") -> ModelRequest:
    said = history or (UserSaid(text="hello"),)
    return ModelRequest(system=system, history=said, functions=(LOOK_UP,), model=model)


@dataclass(frozen=True, slots=True)
class Scene:
    """A fake service and the model that talks to it."""

    fake: FakeModels
    model: ModelProvider

    async def ask(self, asked: ModelRequest | None = None, *, streamed: bool) -> ModelReply:
        heard: list[str] = []
        listener = heard.append if streamed else None
        return await self.model.complete(asked or request(), on_text=listener)


@asynccontextmanager
async def scene(
    provider: ProviderName = ProviderName.OPENAI, *, read_timeout: float = 5, **settings: object
) -> AsyncGenerator[Scene]:
    """Serve a scripted service of that kind and open a model on it."""
    service = chat_completions if provider is ProviderName.OPENAI else responses_api
    async with service() as fake:
        section: dict[str, object] = {"provider": provider, "name": "m", "base_url": fake.url}
        config = ModelConfig.model_validate({**section, "api_key": SecretStr(SECRET), **settings})
        timeouts = Timeouts(read=read_timeout)
        async with open_model(config, timeouts=timeouts) as model:
            yield Scene(fake, model)
