"""The `model` section: which model answers, where it is reached and what stands in for it.

Reads no environment (keys are handed in) and imports no provider.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Self, cast
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from gateway.domain.errors import ConfigError

__all__ = [
    "KEY_VARIABLES",
    "Keys",
    "ModelConfig",
    "ProviderName",
    "Timeouts",
    "keys_from",
    "parse_model",
    "split_name",
]


class ProviderName(StrEnum):
    """Who answers. `OPENAI` is Chat Completions, for every service that speaks it at its `base_url`."""

    OPENAI = "openai"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"


Keys = Mapping[ProviderName, SecretStr]

KEY_VARIABLES: Final[Mapping[ProviderName, tuple[str, ...]]] = {
    ProviderName.OPENAI: ("OPENAI_API_KEY",),
    ProviderName.OPENAI_RESPONSES: ("OPENAI_API_KEY",),
    ProviderName.ANTHROPIC: ("ANTHROPIC_API_KEY",),
    ProviderName.GOOGLE: ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
}
"""Environment variables that hold a provider's key, the preferred one first."""

_OWN_URLS: Final[Mapping[ProviderName, str]] = {
    ProviderName.OPENAI: "https://api.openai.com/v1",
    ProviderName.OPENAI_RESPONSES: "https://api.openai.com/v1",
    ProviderName.ANTHROPIC: "https://api.anthropic.com",
    ProviderName.GOOGLE: "https://generativelanguage.googleapis.com",
}

_FAMILIES: Final = (
    (("gpt-", "chatgpt-", "o1", "o3", "o4"), ProviderName.OPENAI),
    (("claude-",), ProviderName.ANTHROPIC),
    (("gemini-",), ProviderName.GOOGLE),
)
"""Beginnings of names that leave no doubt who serves them."""

_COMPATIBLE: Final[Mapping[str, str]] = {
    "ollama": "http://127.0.0.1:11434/v1",
    "vllm": "http://127.0.0.1:8000/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "lm-studio": "http://127.0.0.1:1234/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}
"""Services people name as a provider, and the `base_url` at which `openai` reaches them."""

_UNSET: Final = "${"


class ModelConfig(BaseModel):
    """One model with what stands in for it; from `provider:name` or a mapping."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    provider: ProviderName
    name: Annotated[str, Field(min_length=1, max_length=200)]
    base_url: str | None = None
    api_key: SecretStr | None = None
    max_tokens: Annotated[int, Field(gt=0)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    context_window: Annotated[int, Field(gt=0)] | None = None
    fallbacks: tuple["ModelConfig", ...] = ()

    @property
    def label(self) -> str:
        """`provider:name`, as replies, logs and errors call it."""
        return f"{self.provider.value}:{self.name}"

    @property
    def url(self) -> str:
        """Where requests go."""
        return self.base_url or _OWN_URLS[self.provider]

    @property
    def at_home(self) -> bool:
        """True when requests go to the provider's own service, not to a compatible one."""
        return urlsplit(self.url).hostname == urlsplit(_OWN_URLS[self.provider]).hostname

    @property
    def needs_key(self) -> bool:
        """True when it cannot work without `api_key`, and none is set."""
        return self.api_key is None and self.base_url is None

    def called(self, spelling: str) -> bool:
        """True when `spelling` (`provider:name`, `provider/name` or a bare name) is this model."""
        return spelling in {self.label, f"{self.provider.value}/{self.name}", self.name}

    def with_keys(self, keys: Keys) -> Self:
        """Return it with missing keys filled in; a key goes to its provider's own service only."""
        own = self.api_key
        if own is None and self.at_home:
            own = keys.get(self.provider)
        fallbacks = tuple(fallback.with_keys(keys) for fallback in self.fallbacks)
        return self.model_copy(update={"api_key": own, "fallbacks": fallbacks})

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: object) -> object:
        if isinstance(value, str):
            return _named(value, known=None)
        if isinstance(value, Mapping) and "provider" not in value:
            section = cast("Mapping[str, object]", value)
            return {**section, **_named(section.get("name"), known=section.get("base_url"))}
        return cast("object", value)

    @field_validator("provider", mode="before")
    @classmethod
    def _known_provider(cls, value: object) -> object:
        if isinstance(value, str) and value not in list(ProviderName):
            raise ValueError(_unknown(value))
        return value

    @field_validator("base_url")
    @classmethod
    def _usable_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if _UNSET in value:
            raise ValueError("it holds a variable that is not set")
        if not value.isprintable() or " " in value:
            raise ValueError("it holds a character no address has")
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("it must start with http:// or https:// and name a host")
        if parts.username is not None or parts.password is not None:
            raise ValueError("it holds credentials: put the key into api_key")
        return value.rstrip("/")

    @field_validator("api_key")
    @classmethod
    def _usable_key(cls, value: SecretStr | None) -> SecretStr | None:
        text = value.get_secret_value().strip() if value is not None else ""
        if not text or _UNSET in text:
            return None
        if not (text.isascii() and text.isprintable()):
            raise ValueError("it holds a character no key has")
        return SecretStr(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds a request may wait at each stage; `read` is between two pieces of an answer.

    A turn's own limit is the runtime's: models that think send nothing for minutes.
    """

    connect: float = 10.0
    read: float = 300.0
    write: float = 60.0
    pool: float = 10.0


def parse_model(raw: object, *, path: str = "model") -> ModelConfig:
    """Read the section.

    Raises:
        ConfigError: With the key below `path` and what is wrong with it; never with a value.
    """
    try:
        return ModelConfig.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join([path, *(str(part) for part in first["loc"])])
        raise ConfigError(where, first["msg"].removeprefix("Value error, ")) from None


def keys_from(environ: Mapping[str, str]) -> Keys:
    """Return the keys an environment (or a `.env` file) holds."""
    found: dict[ProviderName, SecretStr] = {}
    for provider, names in KEY_VARIABLES.items():
        value = next((text for name in names if (text := environ.get(name, "").strip())), "")
        if value:
            found[provider] = SecretStr(value)
    return found


def split_name(text: str) -> tuple[ProviderName | None, str]:
    """Take `provider:name` or `provider/name` apart; a bare name has no provider.

    Names may hold `:` and `/` themselves (`llama3:8b`, `meta-llama/llama-3`): only a known
    provider in front counts.
    """
    for mark in (":", "/"):
        front, found, rest = text.partition(mark)
        if found and front in list(ProviderName):
            return ProviderName(front), rest
    return None, text


def _named(value: object, *, known: object) -> dict[str, object]:
    """Return provider and name for a name that comes without a provider."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("say which model: provider:name")
    provider, name = split_name(value.strip())
    if provider is not None:
        return {"provider": provider, "name": name}
    if known is not None:
        return {"provider": ProviderName.OPENAI, "name": name}
    for beginnings, family in _FAMILIES:
        if name.startswith(beginnings):
            return {"provider": family, "name": name}
    front, mark, _ = name.partition(":")
    raise ValueError(_unknown(front) if mark else f"say who serves {name}: provider:name")


def _unknown(provider: str) -> str:
    """Say which providers there are, and the one that was probably meant."""
    if (url := _COMPATIBLE.get(provider.lower())) is not None:
        return f"{provider} is reached with provider: openai and base_url: {url}"
    near = difflib.get_close_matches(provider.lower(), list(ProviderName), n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"unknown provider {provider!r}; {hint}known are {', '.join(ProviderName)}"
