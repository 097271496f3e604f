"""One address of a provider, spoken to through the model library. Importing it loads the library.

Only `models` imports it, in a thread. Repeats nothing by itself: the turn decides what to retry.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, cast

import httpx2
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.profiles.openai import OpenAIModelProfile, openai_model_profile
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings

from gateway.domain.errors import ModelRejected
from gateway.domain.model import ModelReply, ModelRequest
from gateway.providers.config import ModelConfig, ProviderName, Timeouts
from gateway.providers.errors import translated
from gateway.providers.translate import (
    has_pictures,
    to_messages,
    to_parameters,
    to_reply,
    without_pictures,
)

logger = logging.getLogger(__name__)

_NO_KEY: Final = "no-key"
"""Sent to services that want none: the SDK would otherwise look for one in the environment."""

_MAX_MODELS: Final = 64


class Endpoint:
    """A provider at one address, with the connections to it."""

    def __init__(self, provider: Provider[Any], client: httpx2.AsyncClient) -> None:
        self._provider = provider
        self._client = client
        self._models: dict[str, Model[Any]] = {}

    async def complete(
        self,
        config: ModelConfig,
        request: ModelRequest,
        *,
        on_text: Callable[[str], None] | None = None,
    ) -> ModelReply:
        """Ask one model once; streamed when somebody listens.

        One that refuses a request with pictures is asked again without them: which models see is
        known to nobody, and a picture may be damaged. Their names stay in the text.

        Raises:
            ModelError: Whatever went wrong, translated.
        """
        try:
            return await self._ask(config, request, on_text)
        except ModelRejected as error:
            if not has_pictures(request):
                raise
            logger.warning("%s; asked again without the pictures", error)
        return await self._ask(config, without_pictures(request), on_text)

    async def _ask(
        self,
        config: ModelConfig,
        request: ModelRequest,
        on_text: Callable[[str], None] | None,
    ) -> ModelReply:
        key = config.api_key.get_secret_value() if config.api_key is not None else ""
        with translated(config.label, secret=key):
            model = self.model(config)
            messages = to_messages(request.history)
            parameters = to_parameters(request)
            settings = _settings(config, request)
            if on_text is None:
                response = await model_request(
                    model,
                    messages,
                    model_settings=settings,
                    model_request_parameters=parameters,
                    instrument=False,
                )
            else:
                response = await _streamed(model, messages, settings, parameters, on_text)
        return to_reply(response, model=config.label)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def model(self, config: ModelConfig) -> Model[Any]:
        """Return the library's model of that name; names come from requests, so few are kept."""
        model = self._models.get(config.name)
        if model is None:
            if len(self._models) >= _MAX_MODELS:
                self._models.clear()
            model = self._models[config.name] = _build(config, self._provider)
        return model


def open_endpoint(config: ModelConfig, timeouts: Timeouts) -> Endpoint:
    """Load the provider's package and make the client for one address; connects to nothing."""
    client = httpx2.AsyncClient(
        timeout=httpx2.Timeout(
            connect=timeouts.connect,
            read=timeouts.read,
            write=timeouts.write,
            pool=timeouts.pool,
        )
    )
    provider = _provider(config, client)
    endpoint = Endpoint(provider, client)
    # Builds one to load the modules the first request would otherwise wait for.
    endpoint.model(config)
    return endpoint


def _provider(config: ModelConfig, client: httpx2.AsyncClient) -> Provider[Any]:
    key = config.api_key.get_secret_value() if config.api_key is not None else _NO_KEY
    kind = config.provider
    if kind in {ProviderName.OPENAI, ProviderName.OPENAI_RESPONSES} and not config.at_home:
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        return OpenAICompatibleProvider(
            "openai-compatible", base_url=config.url, api_key=key, http_client=client
        )
    make = cast("Callable[..., Provider[Any]]", infer_provider_class(kind.value))
    return make(base_url=config.url, api_key=key, http_client=client)


def _build(config: ModelConfig, provider: Provider[Any]) -> Model[Any]:
    match config.provider:
        case ProviderName.OPENAI:
            from pydantic_ai.models.openai import OpenAIChatModel

            return OpenAIChatModel(config.name, provider=provider, profile=_chat_profile(config))
        case ProviderName.OPENAI_RESPONSES | ProviderName.ANTHROPIC | ProviderName.GOOGLE:
            name = f"{config.provider.value}:{config.name}"
            return infer_model(name, provider_factory=lambda _: provider)


def _chat_profile(config: ModelConfig) -> OpenAIModelProfile:
    """Say how a Chat Completions service differs from the library's assumptions.

    A stream that ends without a finish reason broke off: its text must not pass for an answer.
    Only OpenAI's own reasoning models insist on the newer name of `max_tokens`, which many
    compatible servers do not know.
    """
    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    if not config.at_home:
        known = openai_model_profile(config.name.rpartition("/")[2])
        newer = known.get("openai_supports_reasoning", False)
        profile["openai_chat_supports_max_completion_tokens"] = bool(newer)
    return profile


def _settings(config: ModelConfig, request: ModelRequest) -> ModelSettings:
    settings = ModelSettings(max_retries=0)
    if config.provider is ProviderName.OPENAI_RESPONSES:
        from pydantic_ai.models.openai import OpenAIResponsesModelSettings

        # We send the whole history each time: nothing needs to stay on the provider's side.
        settings = OpenAIResponsesModelSettings(max_retries=0, openai_store=False)
    limits = [limit for limit in (config.max_tokens, request.max_tokens) if limit is not None]
    if limits:
        settings["max_tokens"] = min(limits)
    if config.temperature is not None:
        settings["temperature"] = config.temperature
    return settings


async def _streamed(
    model: Model[Any],
    messages: list[ModelMessage],
    settings: ModelSettings,
    parameters: ModelRequestParameters,
    on_text: Callable[[str], None],
) -> ModelResponse:
    async with model_request_stream(
        model,
        messages,
        model_settings=settings,
        model_request_parameters=parameters,
        instrument=False,
    ) as stream:
        async for event in stream:
            match event:
                case PartStartEvent(part=TextPart(content=text)) if text:
                    on_text(text)
                case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                    on_text(text)
                case _:
                    pass
        return stream.get()
