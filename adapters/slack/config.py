"""The section `platforms.slack`: one workspace, or several by name. Connects to nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pydantic import SecretStr

from adapters.account import Address, Flag, PlatformAccount, Problem, Root, read_accounts

BOT_VARIABLE: Final = "SLACK_BOT_TOKEN"
APP_VARIABLE: Final = "SLACK_APP_TOKEN"
SECRET_VARIABLE: Final = "SLACK_SIGNING_SECRET"  # noqa: S105 - the variable's name, not a secret
ALLOWED_VARIABLE: Final = "SLACK_ALLOWED_USERS"

DEFAULT_BASE_URL: Final = "https://slack.com/api"

_PATH: Final = "platforms.slack"


class Mode(StrEnum):
    """How things arrive: over sockets that we open, or posted and signed by Slack."""

    SOCKET = "socket"
    HTTP = "http"


class SlackAccount(PlatformAccount):
    """Our app in one workspace. Workspaces of one app share `app_token` or `signing_secret`.

    `reply_in_thread`: a message that calls us in a channel is answered below it, in a thread
    which is the conversation from then on.
    """

    bot_token: SecretStr = SecretStr("")
    app_token: SecretStr = SecretStr("")
    signing_secret: SecretStr = SecretStr("")
    mode: Mode = Mode.SOCKET
    listen: Address = "127.0.0.1:3000"
    base_url: Root = DEFAULT_BASE_URL
    reply_in_thread: Flag = True

    @property
    def is_given(self) -> bool:
        """Whether anything says that this account is wanted."""
        secrets = (self.bot_token, self.app_token, self.signing_secret)
        return self.enabled and any(secret.get_secret_value() for secret in secrets)

    @property
    def missing(self) -> tuple[str, str] | None:
        """Return the key without which it cannot run, and its variable."""
        wanted = {"bot_token": (self.bot_token, BOT_VARIABLE)}
        if self.mode is Mode.SOCKET:
            wanted["app_token"] = (self.app_token, APP_VARIABLE)
        else:
            wanted["signing_secret"] = (self.signing_secret, SECRET_VARIABLE)
        for key, (secret, variable) in wanted.items():
            if not secret.get_secret_value():
                return key, variable
        return None

    @property
    def refusal(self) -> str:
        """Return why this account must not be started, "" when it may."""
        if self.missing is None:
            return ""
        key, variable = self.missing
        purpose = f" ({self.mode} mode needs it)" if key != "bot_token" else ""
        return f"{key} is missing{purpose}: set {variable}, or platforms.slack.{key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSlack:
    """The accounts that are on: something of each is given, if not all it needs."""

    accounts: tuple[SlackAccount, ...] = ()
    problems: tuple[Problem, ...] = ()


def parse_slack(raw: object, *, environ: Mapping[str, str] | None = None) -> ParsedSlack:
    """Read `platforms.slack`, tokens and people filled in from the environment."""
    accounts, problems = read_accounts(
        raw,
        SlackAccount,
        path=_PATH,
        variables={
            "bot_token": BOT_VARIABLE,
            "app_token": APP_VARIABLE,
            "signing_secret": SECRET_VARIABLE,
            "allow_from": ALLOWED_VARIABLE,
        },
        own=("bot_token",),
        doubts=_doubts,
        environ=environ,
    )
    several = any(account.name for account in accounts)
    # What several workspaces share stands beside them and is no account of its own.
    on = [
        account
        for account in accounts
        if account.is_given
        and (account.name or not several or account.bot_token.get_secret_value())
    ]
    return ParsedSlack(accounts=tuple(on), problems=tuple(problems))


def _doubts(account: SlackAccount, path: str) -> Iterable[Problem]:
    given = account.bot_token.get_secret_value() or account.name
    if account.enabled and given and account.missing is not None:
        yield Problem(path=f"{path}.{account.missing[0]}", message=account.refusal)
