"""Making untrusted text safe to show: what is invisible or steers a terminal becomes readable."""

import re
from typing import Final

_CONTROL: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff"
)
_SURROGATES: Final = "\ud800-\udfff"
_UNSAFE: Final = re.compile(f"[{_CONTROL}{_INVISIBLE}{_SURROGATES}]")
_FENCES: Final = re.compile("`{3,}")
_TERMINAL: Final = re.compile(f"[{_CONTROL}{_SURROGATES}\u2028-\u202e\u2066-\u2069]")


def show_escapes(text: str) -> str:
    r"""Write every control, bidi, zero-width, TAG and unpaired surrogate character as `\uXXXX`.

    Tabs and line feeds stay. For cards: what is shown can be read back to what runs (CONTRACTS §e).
    """
    return _UNSAFE.sub(_escape, text)


def strip_terminal(text: str) -> str:
    """Drop what steers a terminal (escape, control, bidi) and keep the rest; CRLF becomes LF."""
    return _TERMINAL.sub("", text.replace("\r\n", "\n"))


def fenced(text: str, *, language: str = "") -> str:
    """Return a text as a code block that nothing in it ends."""
    longest = max((len(found) for found in _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters; a cut text ends in `…`."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
