"""Takes secrets out of texts: those we loaded by their value, foreign ones by their shape.

Structured arguments on cards are redacted by key name elsewhere; this is for lines of text.
"""

import base64
import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import Final

MASK: Final = "***"

# Shorter values ("true", "1") would take ordinary words out of every line.
MIN_SECRET: Final = 6

_KEY_NAMES: Final = (
    r"access_token|refresh_token|id_token|client_secret|api[_-]?key|app_token|bot_token|"
    r"signing_secret|code_verifier|password|passwd|secret"
)

# Each shape keeps what its groups `keep` and `tail` matched.
_SHAPES: Final = tuple(
    re.compile(shape)
    for shape in (
        r"(?P<keep>bot)\d+:[\w-]+",
        r"\b\d{6,}:[A-Za-z0-9_-]{30,}",
        r"\bxox[a-z](?:\.xox[a-z])?-[\w-]+",
        r"\bxapp-[\w-]+",
        r"\bsk-[\w-]{12,}",
        r"\bgh[pousr]_\w{20,}",
        r"\bgithub_pat_\w{20,}",
        r"\bAIza[\w-]{30,}",
        r"\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?",
        r"\b[A-Za-z\d][\w-]{22,30}\.[\w-]{6}\.[\w-]{27,}",
        r"(?i)(?P<keep>\b(?:proxy-)?authorization[\"']?\s*[:=,]\s*[\"']?(?:(?:bearer|basic|bot|token)\s+)?)"
        r"[^\s\"',}]+",
        r"(?i)(?P<keep>\bbearer\s+)[\w.~+/=-]{6,}",
        r"(?i)(?P<keep>\b(?:set-cookie|cookie|x-api-key)[\"']?\s*[:=,]\s*[\"']?)[^\"'\n]+",
        rf"(?i)(?P<keep>\b(?:{_KEY_NAMES})[\"']?\s*[:=]\s*[\"']?)[^\s\"'&,}}]+",
        r"(?P<keep>[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s/@]+(?P<tail>@)",
    )
)


class Redactor:
    """Masks secrets; values may be added while it is in use."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: frozenset[str] = frozenset()
        self._values: re.Pattern[str] | None = None
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Mask these values too, as they are and as JSON, URLs and basic authentication write them."""
        known = self._secrets | {secret for secret in secrets if len(secret.strip()) >= MIN_SECRET}
        if known == self._secrets:
            return
        spellings = {spelling for secret in known for spelling in _spellings(secret)}
        longest_first = sorted(spellings, key=lambda text: (-len(text), text))
        self._secrets = known
        self._values = re.compile("|".join(map(re.escape, longest_first)))

    def redact(self, text: str) -> str:
        """Return the text with every known value and every secret-shaped piece masked."""
        text = self.hide_known(text)
        for shape in _SHAPES:
            text = shape.sub(_masked, text)
        return text

    def hide_known(self, text: str) -> str:
        """Return the text with every known value masked; what only looks like a secret stays."""
        return text if self._values is None else self._values.sub(MASK, text)


def _masked(match: re.Match[str]) -> str:
    kept = match.groupdict()
    return f"{kept.get('keep') or ''}{MASK}{kept.get('tail') or ''}"


def _spellings(secret: str) -> Iterator[str]:
    bare = secret.strip()
    yield bare
    yield json.dumps(bare)[1:-1]
    yield repr(bare)[1:-1]
    yield urllib.parse.quote(bare, safe="", errors="replace")
    yield urllib.parse.quote_plus(bare, errors="replace")
    yield base64.b64encode(bare.encode(errors="surrogatepass")).decode()
