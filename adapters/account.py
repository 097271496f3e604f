"""What the section of every chat platform says of an account, and how sections are read.

Values arrive interpolated; problems never show one, since it may be a secret. Connects to nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, TypeAlias, TypeVar, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

EVERYBODY: Final = "*"

_WORDS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_AnyMapping: TypeAlias = "Mapping[object, object]"


class DmPolicy(StrEnum):
    """What a stranger in a direct message gets: a pairing code, or silence."""

    PAIR = "pair"
    IGNORE = "ignore"


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


Flag: TypeAlias = Annotated[bool, BeforeValidator(_flag)]
Ids: TypeAlias = Annotated[frozenset[str], BeforeValidator(_ids)]
Id: TypeAlias = Annotated[str, BeforeValidator(_id)]
Address: TypeAlias = Annotated[str, AfterValidator(_address)]
"""Where to listen, as HOST:PORT."""
Root: TypeAlias = Annotated[str, AfterValidator(_root)]
"""The address of an API, without a slash at its end."""


class Section(BaseModel):
    """A part of a section; keys it does not know are told elsewhere."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class GroupConfig(Section):
    """What one group has different."""

    require_mention: Flag | None = None
    strict_mention: Flag | None = None


class PlatformAccount(Section):
    """What is the same on every platform. `name` is "" for the account of the section itself."""

    name: str = ""
    enabled: Flag = True
    allow_from: Ids = frozenset()
    open: Flag = False
    dm_policy: DmPolicy | None = None
    groups: Annotated[dict[str, GroupConfig], BeforeValidator(_groups)] = Field(
        default_factory=dict
    )
    require_mention: Flag = True
    strict_mention: Flag = False
    allow_bots: Flag = False
    home_channel: Id = ""
    streaming: Flag = True

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong at a key; `severe` when the account cannot be used as it is written."""

    path: str
    message: str
    severe: bool = True


Account = TypeVar("Account", bound=PlatformAccount)


def read_accounts(
    raw: object,
    kind: type[Account],
    *,
    path: str,
    variables: Mapping[str, str],
    own: Iterable[str],
    doubts: Callable[[Account, str], Iterable[Problem]],
    environ: Mapping[str, str] | None = None,
) -> tuple[list[Account], list[Problem]]:
    """Read a section: its own account and those by name, with what is wrong.

    `variables` fill keys in that are not there; `own` keys are not handed down to named accounts.
    What cannot be read leaves its default and is named; nobody is admitted by mistake.
    """
    if not _is_section(raw):
        return [], [Problem(path=path, message="must be a mapping")]
    section = _texts(raw)
    named = section.pop("accounts", None)
    for key, variable in variables.items():
        if section.get(key) in (None, "", []) and (environ or {}).get(variable):
            section[key] = (environ or {})[variable]
    problems: list[Problem] = []
    sections = [(path, section)]
    if not _is_section(named):
        problems.append(Problem(path=f"{path}.accounts", message="must map names to accounts"))
    # What the section says holds for every account, except who the bot is.
    shared = {key: value for key, value in section.items() if key not in set(own)}
    for name, entry in _texts(named).items():
        sections.append((f"{path}.accounts.{name}", {**shared, **_texts(entry), "name": name}))
    accounts: list[Account] = []
    for place, values in sections:
        account = _read(values, kind, place, problems)
        if EVERYBODY in account.allow_from and not account.open:
            message = '"*" admits nobody unless open: true says that everybody may talk'
            problems.append(Problem(path=f"{place}.allow_from", message=message))
        problems += doubts(account, place)
        accounts.append(account)
    return accounts, problems


def _is_section(raw: object) -> bool:
    return raw is None or isinstance(raw, Mapping)


def _texts(raw: object) -> dict[str, object]:
    """Return a mapping by text keys; anything else is empty."""
    if not isinstance(raw, Mapping):
        return {}
    return {str(key): value for key, value in cast("_AnyMapping", raw).items()}


def _read(
    values: Mapping[str, object], kind: type[Account], path: str, problems: list[Problem]
) -> Account:
    given = {key: value for key, value in values.items() if value is not None}
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        for detail in error.errors(include_input=False, include_url=False):
            place = ".".join(str(part) for part in (path, *detail["loc"]))
            message = detail["msg"].removeprefix("Value error, ")
            problems.append(Problem(path=place, message=message))
            given.pop(str(detail["loc"][0]), None)
        return kind.model_validate(given)
