"""The section `platforms.telegram`: one account, or several by name. Connects to nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from pydantic import BeforeValidator, SecretStr

from adapters.account import Address, PlatformAccount, Problem, Root, Section, read_accounts

TOKEN_VARIABLE: Final = "TELEGRAM_BOT_TOKEN"  # noqa: S105 - the variable's name, not a token
ALLOWED_VARIABLE: Final = "TELEGRAM_ALLOWED_USERS"

DEFAULT_BASE_URL: Final = "https://api.telegram.org"

_PATH: Final = "platforms.telegram"


class Mode(StrEnum):
    """How updates come: we ask for them, or Telegram posts them."""

    POLLING = "polling"
    WEBHOOK = "webhook"


class ReplyTo(StrEnum):
    """Which parts of a reply quote the message they answer."""

    OFF = "off"
    FIRST = "first"
    ALL = "all"


def _switch(value: object) -> object:
    # YAML 1.1 readers and `${VAR}` turn the word into a boolean.
    return "off" if value is False else value


class WebhookConfig(Section):
    """`url` is where Telegram posts, `listen` where we wait for it, `secret` what proves it."""

    url: str = ""
    listen: Address = "127.0.0.1:8443"
    secret: SecretStr = SecretStr("")


class TelegramAccount(PlatformAccount):
    """One bot."""

    token: SecretStr = SecretStr("")
    base_url: Root = DEFAULT_BASE_URL
    mode: Mode = Mode.POLLING
    webhook: WebhookConfig = WebhookConfig()
    reply_to: Annotated[ReplyTo, BeforeValidator(_switch)] = ReplyTo.FIRST

    @property
    def refusal(self) -> str:
        """Return why this account must not be started, "" when it may."""
        if self.mode is Mode.WEBHOOK and not self.webhook.secret.get_secret_value():
            return "webhook.secret is missing: without it anybody could post messages"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTelegram:
    """The accounts that are on: each has a token."""

    accounts: tuple[TelegramAccount, ...] = ()
    problems: tuple[Problem, ...] = ()


def parse_telegram(raw: object, *, environ: Mapping[str, str] | None = None) -> ParsedTelegram:
    """Read `platforms.telegram`, token and people filled in from the environment."""
    accounts, problems = read_accounts(
        raw,
        TelegramAccount,
        path=_PATH,
        variables={"token": TOKEN_VARIABLE, "allow_from": ALLOWED_VARIABLE},
        own=("token",),
        doubts=_doubts,
        environ=environ,
    )
    on = [account for account in accounts if account.enabled and account.token.get_secret_value()]
    return ParsedTelegram(accounts=tuple(on), problems=tuple(problems))


def _doubts(account: TelegramAccount, path: str) -> Iterable[Problem]:
    if account.refusal and account.enabled and account.token.get_secret_value():
        yield Problem(path=f"{path}.webhook.secret", message=account.refusal)
