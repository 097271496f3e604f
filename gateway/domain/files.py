"""Files of messages: what became of them, names that are safe anywhere, and limits in words. Pure."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.domain.text import show_escapes

MAX_NAME_BYTES: Final = 120
MAX_EXTENSION: Final = 10

_SEPARATORS: Final = re.compile(r"[/\\:]+")
_RESERVED: Final = re.compile(r"(?i:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.DOTALL)
_EXTENSION: Final = re.compile(r"\.[a-z0-9]{1,10}")
_KEY: Final = re.compile(r"[a-z]{2,4}-[a-z0-9-]{1,80}(?:\.[a-z0-9]{1,10})?")
_UNITS: Final = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


class FileState(StrEnum):
    """`PENDING`: not here yet. `REFUSED`: we do not take it. `FAILED`: it could not be had.

    `PRUNED`: it was here and is no longer kept.
    """

    PENDING = "pending"
    STORED = "stored"
    REFUSED = "refused"
    FAILED = "failed"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A file in the media folder, under a key that is a name without any directory."""

    key: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    """What a platform takes of us in one file, in bytes; `image` of one that is shown as a picture.

    `images` are the media types it shows so, `album` how many as one message. `caption`: how many
    UTF-16 units a text may have that goes with a file.
    """

    file: int
    image: int
    images: frozenset[str] = frozenset({"image/jpeg", "image/png", "image/webp"})
    album: int = 1
    caption: int = 0


def safe_name(name: str, *, default: str = "file") -> str:
    r"""Return a name that no directory, terminal or file system takes for anything but a name.

    The last part of a path is kept; control, bidi and zero-width characters go, names that devices
    have (`CON`) get a `_`, and a long one is cut before its extension.
    """
    last = next((part for part in reversed(_SEPARATORS.split(name)) if part.strip(". ")), "")
    plain = unicodedata.normalize("NFC", last)
    plain = "".join(each for each in plain if show_escapes(each) == each and each not in "\t\n")
    plain = " ".join(plain.split()).strip(". ")
    if not plain:
        return default
    if _RESERVED.fullmatch(plain):
        plain = f"_{plain}"
    suffix = extension_of(plain)
    stem = plain[: len(plain) - len(suffix)]
    room = MAX_NAME_BYTES - len(suffix)
    return stem.encode("utf-8")[:room].decode("utf-8", "ignore").rstrip(". ") + suffix


def extension_of(name: str) -> str:
    """Return the extension with its dot as it is written, "" when it has none or a strange one."""
    dot = name.rfind(".")
    found = name[dot:] if dot > 0 else ""
    return found if _EXTENSION.fullmatch(found.lower()) else ""


def file_key(prefix: str, unique: str, name: str) -> str:
    """Return the name a file is kept under: ours, with nothing of the sender's but the extension.

    Raises:
        ValueError: `prefix` or `unique` are not what a key is made of.
    """
    key = f"{prefix}-{unique}{extension_of(name).lower()}"
    if not is_key(key):
        raise ValueError(f"{key!r} is no key of a file")
    return key


def is_key(text: str) -> bool:
    """Whether a text is a key of `file_key`: it names a file of the media folder and no other."""
    return _KEY.fullmatch(text) is not None


def in_words(size: int) -> str:
    """Return a number of bytes for people: `1.5 MB`."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{size} bytes"


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them."""
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last
