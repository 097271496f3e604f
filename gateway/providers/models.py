"""The configured model and its fallbacks behind `ModelProvider`.

Imports no provider package: that happens in a thread, at the first request (`wire`). Knows the
names of models, not how they are spoken to.
"""

import asyncio
import importlib.util
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gateway.domain.errors import ConfigError, ModelRejected
from gateway.domain.model import ModelReply, ModelRequest
from gateway.ports import ModelProvider
from gateway.ports.loading import load
from gateway.providers.config import (
    KEY_VARIABLES,
    Keys,
    ModelConfig,
    ProviderName,
    Timeouts,
    parse_model,
    split_name,
)
from gateway.providers.fallback import first_answer

if TYPE_CHECKING:
    from gateway.providers.wire import Endpoint

__all__ = ["ConfiguredModels", "check_model", "open_model", "open_models"]

_NO_KEYS: Final[Keys] = MappingProxyType({})

_PACKAGES: Final[Mapping[ProviderName, tuple[str, str]]] = {
    ProviderName.OPENAI: ("openai", "hermes-gateway"),
    ProviderName.OPENAI_RESPONSES: ("openai", "hermes-gateway"),
    ProviderName.ANTHROPIC: ("anthropic", "hermes-gateway[anthropic]"),
    ProviderName.GOOGLE: ("google.genai", "hermes-gateway[google]"),
}
"""The package a provider needs, and what to install for it."""


def check_model(config: ModelConfig, *, path: str = "model") -> None:
    """Find out without importing or asking anything whether it, and its fallbacks, can work.

    Raises:
        ConfigError: A key or a package is missing; it says which and how to add it.
    """
    if config.needs_key:
        variable = KEY_VARIABLES[config.provider][0]
        raise ConfigError(f"{path}.api_key", f"{config.label} needs a key: set it, or {variable}")
    module, extra = _PACKAGES[config.provider]
    if not _installed(module):
        raise ConfigError(
            f"{path}.provider",
            f"{config.provider.value} needs a package that is not installed: pip install '{extra}'",
        )
    for index, fallback in enumerate(config.fallbacks):
        check_model(fallback, path=f"{path}.fallbacks.{index}")


@asynccontextmanager
async def open_model(
    config: ModelConfig, *, keys: Keys = _NO_KEYS, timeouts: Timeouts | None = None
) -> AsyncGenerator[ModelProvider]:
    """Give the configured model, and close its connections at the end.

    `keys` are what the environment holds (`config.keys_from`); an `api_key` of the configuration
    goes first. Nothing is imported or connected before the first request.

    Raises:
        ConfigError: A key or a package is missing (`check_model`).
    """
    async with open_models(None, keys=keys, timeouts=timeouts) as models:
        yield models.of(config)


@asynccontextmanager
async def open_models(
    default: ModelConfig | None, *, keys: Keys = _NO_KEYS, timeouts: Timeouts | None = None
) -> AsyncGenerator["ConfiguredModels"]:
    """Give the configured model, None without one, and all others of this process, as `open_model`.

    Raises:
        ConfigError: A key or a package of the configured one is missing.
    """
    async with AsyncExitStack() as stack:
        endpoints = _Endpoints(stack, timeouts or Timeouts())
        yield ConfiguredModels(default, keys=keys, endpoints=endpoints)


class ConfiguredModels:
    """The models of one process; those at one address share its connections."""

    def __init__(self, default: ModelConfig | None, *, keys: Keys, endpoints: "_Endpoints") -> None:
        self._keys = keys
        self._endpoints = endpoints
        self._default = None if default is None else self._made(default)

    @property
    def default(self) -> ModelProvider | None:
        """The configured model, None without one."""
        return self._default

    def of(self, config: ModelConfig) -> ModelProvider:
        """Return the model that a section describes.

        Raises:
            ConfigError: A key or a package is missing.
        """
        return self._made(config)

    def find(self, name: str) -> ModelProvider:
        """Return a model by its name; the configured one and its fallbacks stand in for it.

        Raises:
            ModelRejected: It cannot be used, with the reason.
        """
        if self._default is not None:
            return self._default.named(name)
        try:
            return self._made(parse_model(name))
        except ConfigError as error:
            raise ModelRejected(name, error.problem) from error

    def _made(self, config: ModelConfig) -> "_ConfiguredModel":
        filled = config.with_keys(self._keys)
        check_model(filled)
        return _ConfiguredModel(filled, keys=self._keys, endpoints=self._endpoints)


class _ConfiguredModel:
    """Implements `ModelProvider`: the model a request names, then the fallbacks."""

    def __init__(self, config: ModelConfig, *, keys: Keys, endpoints: "_Endpoints") -> None:
        self._config = config
        self._keys = keys
        self._endpoints = endpoints

    @property
    def name(self) -> str:
        return self._config.label

    @property
    def context_window(self) -> int | None:
        return self._config.context_window

    @property
    def asks_person(self) -> bool:
        return False

    async def complete(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        wanted = self._wanted(request.model)
        others = [model for model in self._configured() if model.label != wanted.label]
        allowed = [config for config in (wanted, *others) if _may_answer(config, request)]
        if not allowed:
            raise ModelRejected(wanted.label, "it is not among the models allowed here")
        models = [_OneModel(config, self._endpoints) for config in allowed]
        return await first_answer(models, request, on_text=on_text)

    def named(self, spelling: str) -> ModelProvider:
        """Return what asks another model first, and then these.

        Raises:
            ModelRejected: It names a provider that is not set up.
        """
        wanted = self._wanted(spelling)
        others = tuple(model for model in self._configured() if model.label != wanted.label)
        config = wanted.model_copy(update={"fallbacks": others})
        return _ConfiguredModel(config, keys=self._keys, endpoints=self._endpoints)

    def _configured(self) -> Sequence[ModelConfig]:
        return (self._config, *self._config.fallbacks)

    def _wanted(self, spelling: str) -> ModelConfig:
        """Return the model a request names; any other name is asked of the configured provider.

        Raises:
            ModelRejected: It names a provider that is not set up.
        """
        if not spelling:
            return self._config
        for config in self._configured():
            if config.called(spelling):
                return config
        provider, name = split_name(spelling)
        if provider is None:
            return _renamed(self._config, name)
        for config in self._configured():
            if config.provider is provider:
                return _renamed(config, name)
        other = ModelConfig(provider=provider, name=name).with_keys(self._keys)
        try:
            check_model(other)
        except ConfigError as error:
            raise ModelRejected(other.label, error.problem) from error
        return other


class _OneModel:
    """Implements `ModelProvider` for one name at one endpoint, without fallbacks."""

    def __init__(self, config: ModelConfig, endpoints: "_Endpoints") -> None:
        self._config = config
        self._endpoints = endpoints

    @property
    def name(self) -> str:
        return self._config.label

    @property
    def context_window(self) -> int | None:
        return self._config.context_window

    @property
    def asks_person(self) -> bool:
        return False

    async def complete(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        endpoint = await self._endpoints.get(self._config)
        return await endpoint.complete(self._config, request, on_text=on_text)


class _Endpoints:
    """One HTTP client per address and key, opened at first use; the stack closes them."""

    def __init__(self, stack: AsyncExitStack, timeouts: Timeouts) -> None:
        self._stack = stack
        self._timeouts = timeouts
        self._opened: dict[tuple[ProviderName, str, str], Endpoint] = {}
        self._opening = asyncio.Lock()

    async def get(self, config: ModelConfig) -> "Endpoint":
        """Return the client for a model's address.

        Raises:
            ModelRejected: Its package does not load.
        """
        key = config.api_key.get_secret_value() if config.api_key is not None else ""
        address = (config.provider, config.url, key)
        async with self._opening:
            if (known := self._opened.get(address)) is not None:
                return known
            try:
                # Loading a provider package takes a second or two that others must not wait for.
                endpoint = await load(_open_endpoint, config, self._timeouts)
            except ImportError as error:
                raise ModelRejected(config.label, "its package cannot be loaded") from error
            self._stack.push_async_callback(endpoint.close)
            self._opened[address] = endpoint
            return endpoint


def _may_answer(config: ModelConfig, request: ModelRequest) -> bool:
    names = request.allowed_models
    return not names or any(config.called(name) for name in names)


def _renamed(config: ModelConfig, name: str) -> ModelConfig:
    """Return another model at the same address; its window is not known."""
    return config.model_copy(update={"name": name, "context_window": None, "fallbacks": ()})


def _open_endpoint(config: ModelConfig, timeouts: Timeouts) -> "Endpoint":
    from gateway.providers.wire import open_endpoint

    return open_endpoint(config, timeouts)


def _installed(module: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
