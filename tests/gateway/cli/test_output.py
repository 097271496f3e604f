import io
import json
import re
import sys

import pytest

from gateway.cli.output import print_data, print_json, say
from tests.support.requirement import requirement

HOSTILE = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\r\x00\x08\u202e\ud800 left\ttab\nnext"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800]")


@requirement("threat.s22")
def test_text_of_strangers_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    print_data(HOSTILE)
    print_json({HOSTILE: [HOSTILE]})
    printed = capsys.readouterr()
    assert not CONTROL.search(printed.out + printed.err)
    assert "left\ttab\nnext\n" in printed.err


@requirement("threat.s22")
def test_json_keeps_what_it_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": HOSTILE, "fine": "é ✓"})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"text": HOSTILE, "fine": "é ✓"}
    assert "é ✓" in printed


def test_a_terminal_without_unicode_gets_what_it_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    print_data("é ✓ plain")
    assert raw.getvalue() == b"? ? plain\n"
