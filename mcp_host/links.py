"""Which link a server may ask a person to open: one whose host everybody can see. Pure."""

import re
from typing import Final
from urllib.parse import urlsplit

from gateway.domain.form import MAX_TEXT

_SCHEMES: Final = frozenset({"https", "http"})
_PLAIN: Final = re.compile(r"[!-~]+")
_NO_LINK: Final = re.compile(r"[<>\"`\\^{|}]")


def link_problem(url: object) -> str:
    """Say what a link has against being shown, "" when there is nothing.

    A host that looks like another one is told by its letters, so only plain ones are taken, and
    nothing may stand before the host that reads like one.
    """
    if not isinstance(url, str) or not url:
        return "wants a link opened without saying which"
    if len(url) > MAX_TEXT:
        return f"wants a link opened that is longer than {MAX_TEXT} characters"
    if not _PLAIN.fullmatch(url) or _NO_LINK.search(url):
        return "wants a link opened that has letters no address has"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "wants something opened that is no link"
    if parts.scheme not in _SCHEMES or not host:
        return "wants something opened that is no web address"
    if "@" in parts.netloc:
        return "wants a link opened whose host is hidden behind a user name"
    return ""
