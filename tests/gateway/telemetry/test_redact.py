import base64
import json
import urllib.parse

import pytest

from gateway.telemetry.redact import MASK, Redactor
from tests.support.requirement import requirement

SECRET = 'canary "value"/7f3a+9'


@requirement("threat.s19")
@pytest.mark.parametrize(
    "spelling",
    [
        SECRET,
        json.dumps(SECRET),
        repr({"key": SECRET}),
        urllib.parse.quote(SECRET, safe=""),
        urllib.parse.quote_plus(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
    ],
)
def test_a_loaded_secret_is_masked_in_every_spelling(spelling: str) -> None:
    text = Redactor([SECRET]).redact(f"before {spelling} after")
    assert "7f3a" not in text
    assert text.startswith("before ")
    assert text.endswith(" after")


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (
            "POST https://api.telegram.org/bot123456:AAH-x_9fffffffffffffffffffffffffff/sendMessage",
            "POST https://api.telegram.org/bot***/sendMessage",
        ),
        ("token 1234567:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "token ***"),
        ("xoxb-12-34-abc and xapp-1-A0-99-ff", "*** and ***"),
        ("key sk-proj-abcdefghijklmnop used", "key *** used"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
        ("{'authorization': 'Basic dXNlcjpwYXNz'}", "{'authorization': 'Basic ***'}"),
        ("jwt eyJhbGciOi.eyJzdWIiOiIx.c2ln end", "jwt *** end"),
        ("refresh_token=r1-abc&scope=all", "refresh_token=***&scope=all"),
        ('{"client_secret": "very-secret"}', '{"client_secret": "***"}'),
        ("postgresql://hermes:pass@db/x", "postgresql://hermes:***@db/x"),
    ],
)
def test_secrets_nobody_loaded_are_known_by_their_shape(text: str, redacted: str) -> None:
    assert Redactor().redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "server notes: connecting -> ready",
        "turn 5 took 12 ms, 3 tool calls",
        "https://example.org/path?query=1",
        "agent:main:telegram:dm:100001",
        "robot 12 says: hello",
    ],
)
def test_ordinary_lines_are_left_alone(text: str) -> None:
    assert Redactor(["true", "1", ""]).redact(text) == text


def test_values_may_be_added_while_it_is_in_use() -> None:
    redactor = Redactor()
    redactor.add(["first-secret"])
    redactor.add(["second-secret"])
    assert redactor.redact("first-secret second-secret") == f"{MASK} {MASK}"
