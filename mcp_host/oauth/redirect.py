"""Reads what an authorization server sends a browser back with (RFC 6749 section 4.1.2, RFC 9207).

Pure. A query comes from a browser or from a person's clipboard, and nobody vouches for either:
nothing of it is believed before `state` and `iss` fit.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from mcp_host.sanitize import show_name

MAX_QUERY: Final = 16 << 10
_MAX_FIELDS: Final = 64
_MAX_SHOWN: Final = 120
_OURS: Final = ("state", "code", "iss", "error")

_MEANINGS: Final[Mapping[str, str]] = {
    "access_denied": "you, or it, said no",
    "invalid_scope": "it does not give the scope that was asked for: set oauth.scope",
    "invalid_request": "it found something wrong in the request",
    "unauthorized_client": "it does not let this client sign in: register your own client",
    "unsupported_response_type": "it gives no authorization codes",
    "server_error": "something failed there: try again later",
    "temporarily_unavailable": "it is overloaded: try again later",
}


class NotOurs(Exception):
    """No answer to any login of ours: who waits goes on waiting."""


class WrongState(Exception):
    """The answer to another login, or to one that somebody else began."""


class LoginRefused(Exception):
    """The login has failed; the text says why, and holds neither the code nor a line of theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the answer must have; `issuer` as the server's own metadata spell it.

    `iss_may_lack`: a server that says it sends `iss`, and does not, is let by.
    """

    state: str = field(repr=False)
    issuer: str
    iss_advertised: bool = False
    iss_may_lack: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The code to exchange; `warning` is one sentence for the person, or ""."""

    code: str = field(repr=False)
    warning: str = ""


def read_redirect(expected: Expected, query: str) -> Granted:
    """Return what a query grants.

    Raises:
        NotOurs: It has no state.
        WrongState: Its state is another one.
        LoginRefused: The server said no, or who answered is not who was asked.
    """
    given = _fields(query)
    if not any(given.get("state", [])):
        raise NotOurs
    if any(len(values) > 1 for values in given.values()):
        # RFC 6749 section 3.1: no parameter comes twice; two readers would see two answers.
        raise LoginRefused("the redirect names something twice; sign in once more")
    values = {name: found[0] for name, found in given.items()}
    if not _same(values["state"], expected.state):
        raise WrongState
    warning = _check_issuer(expected, values.get("iss"))
    if "error" in values:
        raise LoginRefused(_refusal(values["error"]))
    if not values.get("code"):
        raise LoginRefused("the redirect holds no code; sign in once more")
    return Granted(code=values["code"], warning=warning)


def pasted_query(text: str) -> str:
    """Return the query of what a person pasted: a whole URL, or its query alone."""
    line = "".join(text.split()).strip("\"'<>`")
    if "?" in line:
        line = line.partition("?")[2]
    elif "://" in line:
        line = urlsplit(line).query
    return line.partition("#")[0]


def _fields(query: str) -> dict[str, list[str]]:
    """Return the parameters that we know, each with all its values."""
    if len(query) > MAX_QUERY:
        raise NotOurs
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise NotOurs from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        if name in _OURS:
            found.setdefault(name, []).append(value)
    return found


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _check_issuer(expected: Expected, iss: str | None) -> str:
    """Refuse another issuer's answer, before anything that it says is shown; returns a warning."""
    if iss is not None:
        if iss != expected.issuer:
            raise LoginRefused(
                "the redirect comes from another authorization server than the one that was asked "
                "(its iss differs): nothing was signed in"
            )
        return ""
    if not expected.iss_advertised:
        return ""
    if not expected.iss_may_lack:
        raise LoginRefused(
            "the redirect does not say which authorization server it comes from (iss is missing, "
            "and this one says that it sends it): nothing was signed in"
        )
    return f"{expected.issuer} left out iss, which it says it sends; it was let by for this issuer"


def _refusal(error: str) -> str:
    # `error_description` and `error_uri` are prose of a stranger, and stay unread.
    shown = show_name(error, limit=_MAX_SHOWN)
    meaning = _MEANINGS.get(error)
    return f"the sign-in was refused: {shown}{f' ({meaning})' if meaning else ''}"
