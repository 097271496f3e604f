"""What a scripted model answers, whatever the wire: replies in a queue, rules, and faults.

In a test:

    async with chat_completions() as fake:            # tests/fakes/chat_completions.py
        fake.script.say("Hello")                      # the next answer
        fake.script.call("tool_search", {"queries": ["issues"]})
        fake.script.fail("rate_limited", retry_after=2)
        config = ModelConfig(provider="openai", name="m", base_url=fake.url)
        ...
        fake.requests[0].body["messages"]             # what was asked

As a process (for end-to-end tests; prints `{"url": "http://127.0.0.1:PORT/v1"}` as its first line):

    python -m tests.fakes.chat_completions --port 0 --script FILE [--record FILE]

FILE is JSON: {"rules": [RULE, ...]}, a list of RULEs, or a list of REPLYs (a queue).
RULE: {"when": {...}, "times": 1, "reply": REPLY}. The first rule that matches and is not used up
answers; without "times" it answers for ever; "when" absent or {} matches everything. Conditions:
    "last": REGEX    searched in the text of the last message
    "role": "user"   role of the last message: user, assistant or tool
    "offers": NAME   that function is offered
    "model": NAME    the model asked for
REPLY: {"text": "...", "calls": [{"name": N, "arguments": {...} or "raw text"}],
        "fault": FAULT, "retry_after": 2, "delay": 0.5, "finish": "length", "piece": 4}
FAULT: rate_limited (429) · server_error (500) · overloaded (529) · unavailable (503) · unauthorized (401)
       quota (429) · rejected (400) · context_too_long (400) · no_such_model (404) · stream_error
       cut (the connection breaks half-way through the text) · ends (closes without a finish reason)
       empty · garbage (200, not JSON) · slow (no answer until the fake closes)
       `stream_error` and `ends` show only when streaming: the whole answer breaks off for `ends`.
With nothing left it answers "You said: <last text>".
"""

import json
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

Json = Mapping[str, object]

STATUS_FAULTS: Final[Mapping[str, tuple[int, str, str, str]]] = {
    "rate_limited": (429, "rate_limit_exceeded", "requests", "Rate limit reached."),
    "server_error": (500, "server_error", "server_error", "The server had an error."),
    "overloaded": (529, "overloaded_error", "overloaded_error", "Overloaded"),
    "unavailable": (503, "service_unavailable", "server_error", "Try again later."),
    "unauthorized": (401, "invalid_api_key", "invalid_request_error", "Incorrect API key: {key}."),
    "quota": (429, "insufficient_quota", "insufficient_quota", "You exceeded your quota."),
    "rejected": (400, "unsupported_value", "invalid_request_error", "temperature is not supported"),
    "context_too_long": (
        400,
        "context_length_exceeded",
        "invalid_request_error",
        "This model's maximum context length is 8192 tokens.",
    ),
    "no_such_model": (404, "model_not_found", "invalid_request_error", "No such model."),
}
"""status, code, type and message of the faults that are an HTTP status; `{key}` is the key sent."""

FAULTS: Final = frozenset(
    {*STATUS_FAULTS, "stream_error", "cut", "ends", "empty", "garbage", "slow"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer; `calls` are names with arguments, an object or the raw text to send.

    Streamed, half of it waits until there is a file `held`, if that is named.
    """

    text: str = ""
    calls: tuple[tuple[str, Json | str], ...] = ()
    fault: str = ""
    retry_after: float | None = None
    delay: float = 0
    finish: str = ""
    piece: int = 4
    held: str = ""

    def __post_init__(self) -> None:
        if self.fault and self.fault not in FAULTS:
            raise ValueError(f"unknown fault {self.fault}; known are {sorted(FAULTS)}")

    @property
    def raw_calls(self) -> tuple[tuple[str, str], ...]:
        """Names with the text of their arguments."""
        return tuple(
            (name, given if isinstance(given, str) else json.dumps(given))
            for name, given in self.calls
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a reply is chosen by, read from a request of either wire."""

    text: str
    role: str
    offers: frozenset[str]
    model: str


@dataclass(slots=True, kw_only=True)
class Rule:
    """Answers what it matches; `times` None is for ever."""

    reply: Reply
    last: str = ""
    role: str = ""
    offers: str = ""
    model: str = ""
    times: int | None = None

    def matches(self, asked: Asked) -> bool:
        """Return whether it answers; one that is used up does not."""
        return (
            self.times != 0
            and re.search(self.last, asked.text) is not None
            and self.role in {"", asked.role}
            and (not self.offers or self.offers in asked.offers)
            and self.model in {"", asked.model}
        )


@dataclass(slots=True)
class Script:
    """The queue goes first, then the rules, then an echo."""

    queue: deque[Reply] = field(default_factory=deque[Reply])
    rules: list[Rule] = field(default_factory=list[Rule])

    def say(self, text: str, *, finish: str = "", piece: int = 4) -> None:
        self.queue.append(Reply(text=text, finish=finish, piece=piece))

    def call(self, name: str, arguments: Json | str, *, text: str = "") -> None:
        self.queue.append(Reply(text=text, calls=((name, arguments),)))

    def fail(self, fault: str, *, retry_after: float | None = None, text: str = "") -> None:
        self.queue.append(Reply(fault=fault, retry_after=retry_after, text=text))

    def next(self, asked: Asked) -> Reply:
        if self.queue:
            return self.queue.popleft()
        rule = next((rule for rule in self.rules if rule.matches(asked)), None)
        if rule is None:
            return Reply(text=f"You said: {asked.text}")
        if rule.times is not None:
            rule.times -= 1
        return rule.reply


def load_script(path: Path) -> Script:
    """Read a script file; see the module's head for its form."""
    raw: object = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(raw, dict):
        raw = cast("Json", raw)["rules"]
    entries = [cast("Json", entry) for entry in cast("Sequence[object]", raw)]
    script = Script()
    for entry in entries:
        if "reply" in entry:
            script.rules.append(_rule(entry))
        else:
            script.queue.append(_reply(entry))
    return script


def _rule(entry: Json) -> Rule:
    conditions = cast("Mapping[str, str]", entry.get("when") or {})
    times = cast("int | None", entry.get("times"))
    return Rule(reply=_reply(cast("Json", entry["reply"])), times=times, **conditions)


def _reply(entry: Json) -> Reply:
    calls = cast("Sequence[Json]", entry.get("calls") or ())
    return Reply(
        text=str(entry.get("text", "")),
        calls=tuple(
            (str(call["name"]), cast("Json | str", call.get("arguments", {}))) for call in calls
        ),
        fault=str(entry.get("fault", "")),
        retry_after=cast("float | None", entry.get("retry_after")),
        delay=cast("float", entry.get("delay", 0)),
        finish=str(entry.get("finish", "")),
        piece=cast("int", entry.get("piece", 4)),
    )
