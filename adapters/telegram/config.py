"""The section `platforms.telegram`: one account, or several by name. Connects to nothing.

Values arrive interpolated; problems never show one, since it may be a secret.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
)

TOKEN_VARIABLE: Final = "TELEGRAM_BOT_TOKEN"  # noqa: S105 - the variable's name, not a token
ALLOWED_VARIABLE: Final = "TELEGRAM_ALLOWED_USERS"

DEFAULT_BASE_URL: Final = "https://api.telegram.org"
EVERYBODY: Final = "*"

_PATH: Final = "platforms.telegram"
_WORDS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_AnyMapping: TypeAlias = "Mapping[object, object]"


class Mode(StrEnum):
    """How updates come: we ask for them, or Telegram posts them."""

    POLLING = "polling"
    WEBHOOK = "webhook"


class DmPolicy(StrEnum):
    """What a stranger in a direct message gets: a pairing code, or silence."""

    PAIR = "pair"
    IGNORE = "ignore"


class ReplyTo(StrEnum):
    """Which parts of a reply quote the message they answer."""

    OFF = "off"
    FIRST = "first"
    ALL = "all"


def _ids(value: object) -> object:
    """Take ids written as numbers, and one alone."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, int) and not isinstance(value, bool):
        return [str(value)]
    if isinstance(value, list | tuple):
        return [_id(item) for item in cast("list[object]", value)]
    return value


def _id(value: object) -> object:
    plain = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if plain else value.strip() if isinstance(value, str) else value


def _flag(value: object) -> object:
    return _WORDS.get(value.strip().lower(), value) if isinstance(value, str) else value


def _switch(value: object) -> object:
    # YAML 1.1 readers and `${VAR}` turn the word into a boolean.
    return "off" if value is False else value


def _groups(value: object) -> object:
    nothing: dict[str, object] = {}
    if isinstance(value, Mapping):
        return {_id(key): item or nothing for key, item in cast("_AnyMapping", value).items()}
    ids = _ids(value)
    return dict.fromkeys(cast("list[object]", ids), nothing) if isinstance(ids, list) else ids


def _address(value: str) -> str:
    host, mark, port = value.rpartition(":")
    if not (mark and host and port.isdecimal() and int(port) < 65_536):
        raise ValueError("must be HOST:PORT, such as 127.0.0.1:8443")
    return value


def _root(value: str) -> str:
    if not value.startswith(("https://", "http://")):
        raise ValueError("must be an http or https address")
    return value.rstrip("/")


_Flag: TypeAlias = Annotated[bool, BeforeValidator(_flag)]
_Ids: TypeAlias = Annotated[frozenset[str], BeforeValidator(_ids)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class GroupConfig(_Section):
    """What one group has different."""

    require_mention: _Flag | None = None
    strict_mention: _Flag | None = None


class WebhookConfig(_Section):
    """`url` is where Telegram posts, `listen` where we wait for it, `secret` what proves it."""

    url: str = ""
    listen: Annotated[str, AfterValidator(_address)] = "127.0.0.1:8443"
    secret: SecretStr = SecretStr("")


class TelegramAccount(_Section):
    """One bot. `name` is "" for the account of the section itself."""

    name: str = ""
    enabled: _Flag = True
    token: SecretStr = SecretStr("")
    base_url: Annotated[str, AfterValidator(_root)] = DEFAULT_BASE_URL
    mode: Mode = Mode.POLLING
    webhook: WebhookConfig = WebhookConfig()
    allow_from: _Ids = frozenset()
    open: _Flag = False
    dm_policy: DmPolicy | None = None
    groups: Annotated[dict[str, GroupConfig], BeforeValidator(_groups)] = Field(
        default_factory=dict
    )
    require_mention: _Flag = True
    strict_mention: _Flag = False
    allow_bots: _Flag = False
    home_channel: Annotated[str, BeforeValidator(_id)] = ""
    streaming: _Flag = True
    reply_to: Annotated[ReplyTo, BeforeValidator(_switch)] = ReplyTo.FIRST

    @property
    def people(self) -> frozenset[str]:
        """Who may talk, by user id; nobody by the wildcard unless `open` says so."""
        return self.allow_from if self.open else self.allow_from - {EVERYBODY}

    @property
    def strangers(self) -> DmPolicy:
        """What a stranger's direct message gets."""
        if self.dm_policy is not None:
            return self.dm_policy
        return DmPolicy.IGNORE if self.allow_from else DmPolicy.PAIR

    @property
    def refusal(self) -> str:
        """Return why this account must not be started, "" when it may."""
        if self.mode is Mode.WEBHOOK and not self.webhook.secret.get_secret_value():
            return "webhook.secret is missing: without it anybody could post messages"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong at a key; `severe` when the account cannot be used as it is written."""

    path: str
    message: str
    severe: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTelegram:
    """The accounts that are on: each has a token."""

    accounts: tuple[TelegramAccount, ...] = ()
    problems: tuple[Problem, ...] = ()


def parse_telegram(raw: object, *, environ: Mapping[str, str] | None = None) -> ParsedTelegram:
    """Read `platforms.telegram`, token and people filled in from the environment.

    What cannot be read leaves its default and is named; nobody is admitted by mistake.
    """
    if not _is_section(raw):
        return ParsedTelegram(problems=(Problem(path=_PATH, message="must be a mapping"),))
    section = _texts(raw)
    named = section.pop("accounts", None)
    for key, variable in (("token", TOKEN_VARIABLE), ("allow_from", ALLOWED_VARIABLE)):
        if section.get(key) in (None, "", []) and (environ or {}).get(variable):
            section[key] = (environ or {})[variable]
    problems: list[Problem] = []
    accounts = [_account(section, _PATH, problems)]
    if not _is_section(named):
        problems.append(Problem(path=f"{_PATH}.accounts", message="must map names to accounts"))
    # What the section says holds for every account, except who the bot is.
    shared = {key: value for key, value in section.items() if key != "token"}
    for name, entry in _texts(named).items():
        values = {**shared, **_texts(entry), "name": name}
        accounts.append(_account(values, f"{_PATH}.accounts.{name}", problems))
    on = [account for account in accounts if account.enabled and account.token.get_secret_value()]
    return ParsedTelegram(accounts=tuple(on), problems=tuple(problems))


def _is_section(raw: object) -> bool:
    return raw is None or isinstance(raw, Mapping)


def _texts(raw: object) -> dict[str, object]:
    """Return a mapping by text keys; anything else is empty."""
    if not isinstance(raw, Mapping):
        return {}
    return {str(key): value for key, value in cast("_AnyMapping", raw).items()}


def _account(values: Mapping[str, object], path: str, problems: list[Problem]) -> TelegramAccount:
    given = {key: value for key, value in values.items() if value is not None}
    try:
        account = TelegramAccount.model_validate(given)
    except ValidationError as error:
        for detail in error.errors(include_input=False, include_url=False):
            place = ".".join(str(part) for part in (path, *detail["loc"]))
            message = detail["msg"].removeprefix("Value error, ")
            problems.append(Problem(path=place, message=message))
            given.pop(str(detail["loc"][0]), None)
        account = TelegramAccount.model_validate(given)
    problems += _doubts(account, path)
    return account


def _doubts(account: TelegramAccount, path: str) -> list[Problem]:
    found: list[Problem] = []
    if EVERYBODY in account.allow_from and not account.open:
        message = '"*" admits nobody unless open: true says that everybody may talk'
        found.append(Problem(path=f"{path}.allow_from", message=message))
    if account.refusal and account.enabled and account.token.get_secret_value():
        found.append(Problem(path=f"{path}.webhook.secret", message=account.refusal))
    return found
