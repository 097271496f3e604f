"""Where a command's words go: data to stdout, everything for people to stderr.

Whatever is written can hold the text of strangers, so nothing that steers a terminal gets out.
"""

import json
import os
import re
import sys
from typing import Final

from gateway.domain.text import strip_terminal

# JSON text itself escapes only what is below 0x20.
_STEERING: Final = re.compile("[\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069]")


def print_json(value: object) -> None:
    """Write one JSON document to stdout."""
    _write(_escaped(json.dumps(value, ensure_ascii=False, indent=2)))


def print_json_line(value: object) -> None:
    """Write one JSON document to stdout as a line of its own, for who reads while we go on."""
    _write(_escaped(json.dumps(value, ensure_ascii=False)))


def print_data(text: str) -> None:
    """Write a line or a document that a program may read to stdout."""
    _write(strip_terminal(text).removesuffix("\n"))


def say(text: str) -> None:
    """Tell a person something, on stderr."""
    sys.stderr.write(f"{strip_terminal(text)}\n")
    sys.stderr.flush()


def drop_output() -> None:
    """Send what is still buffered nowhere: stdout cannot take it, and Python would try at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _escaped(text: str) -> str:
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _write(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(f"{text}\n".encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()
