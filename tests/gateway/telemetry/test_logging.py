import io
import json
import logging
import os
import re
import stat
from pathlib import Path

import pytest

from gateway.telemetry import agent_log
from gateway.telemetry.config import LogFormat, LoggingConfig, LogLevel
from gateway.telemetry.context import bind
from gateway.telemetry.formatting import TextFormatter
from gateway.telemetry.logging import set_up
from gateway.telemetry.redact import Redactor
from tests.support.requirement import requirement

SECRET = "canary-7f3a9-value"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
DEBUG = LoggingConfig(level=LogLevel.DEBUG)

logger = logging.getLogger("gateway.test_logging")


class _Leaky:
    def __init__(self, *, fail: bool = False) -> None:
        self._fail = fail

    def __str__(self) -> str:
        if self._fail:
            raise ValueError(SECRET)
        return SECRET

    __repr__ = __str__


def test_no_secret_gets_out_by_message_argument_or_exception(tmp_path: Path) -> None:
    stream = io.StringIO()
    with set_up(DEBUG, redactor=Redactor([SECRET]), logs=tmp_path, stream=stream):
        logger.info("message %s", SECRET)
        logger.info("object %s %r", _Leaky(), {"key": _Leaky()})
        try:
            raise RuntimeError(SECRET) from ValueError(f"cause {SECRET}")
        except RuntimeError:
            logger.exception("failed")
        agent_log.tool_call(
            conversation="c", server="s", tool="t", ms=1, outcome="error", error=f"bad {SECRET}"
        )
    written = stream.getvalue() + "".join(path.read_text() for path in tmp_path.iterdir())
    assert SECRET not in written
    assert written.count("RuntimeError: ***") == 2


@pytest.mark.parametrize(
    ("template", "arguments"),
    [("too few %s %s", (SECRET,)), ("cannot be shown: %s", (_Leaky(fail=True),))],
)
def test_a_faulty_log_call_keeps_its_template_and_prints_no_data(
    template: str, arguments: tuple[object, ...]
) -> None:
    record = logging.LogRecord("gateway", logging.INFO, "x.py", 1, template, arguments, None)
    line = TextFormatter(Redactor()).format(record)
    assert line.endswith(f"gateway {template} (arguments do not fit)")


@requirement("threat.s22")
@pytest.mark.parametrize("kind", list(LogFormat))
def test_nothing_that_steers_a_terminal_reaches_a_log(kind: LogFormat) -> None:
    hostile = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\r\x00 left\nFAKE INFO line"
    stream = io.StringIO()
    config = LoggingConfig(format=kind)
    with set_up(config, redactor=Redactor(), logs=None, stream=stream), bind(server=hostile):
        logger.warning("stderr of the server: %s", hostile)
        try:
            raise RuntimeError(hostile)
        except RuntimeError:
            logger.exception("failed")
    assert not CONTROL.search(stream.getvalue())
    assert "\nFAKE" not in stream.getvalue()


def test_a_line_carries_the_ids_of_what_it_belongs_to() -> None:
    stream = io.StringIO()
    with set_up(DEBUG, redactor=Redactor(), logs=None, stream=stream):
        with bind(conversation="agent:main:terminal:dm:local"), bind(turn=7):
            logger.info("inside")
        logger.info("outside")
    inside, outside = stream.getvalue().splitlines()
    assert "[conversation=agent:main:terminal:dm:local turn=7] inside" in inside
    assert outside.endswith("gateway.test_logging outside")


def test_json_lines_have_the_same_content_as_fields() -> None:
    stream = io.StringIO()
    config = LoggingConfig(format=LogFormat.JSON)
    with set_up(config, redactor=Redactor(), logs=None, stream=stream), bind(server="notes"):
        logger.warning("state %s", "parked")
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "gateway.test_logging",
        "server": "notes",
        "message": "state parked",
    }


def test_the_configured_level_rules_our_loggers_and_libraries_stay_at_warnings() -> None:
    stream = io.StringIO()
    with set_up(DEBUG, redactor=Redactor(), logs=None, stream=stream):
        logger.debug("ours")
        logging.getLogger("httpx").info("HTTP Request: POST https://x")
        logging.getLogger("aiosqlite").debug("executing insert with a body")
    assert [line.split()[-1] for line in stream.getvalue().splitlines()] == ["ours"]


def test_the_files_are_private_and_bounded(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with set_up(
            LoggingConfig(), redactor=Redactor(), logs=tmp_path, stream=None, max_bytes=2000
        ):
            for number in range(500):
                logger.info("line %d of a long run", number)
                agent_log.connect(server="notes", ms=number, outcome="ok")
    finally:
        os.umask(before)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 12
    assert all(path.stat().st_size <= 2000 for path in files)
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_set_up_leaves_logging_as_it_was(tmp_path: Path) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers), logging.getLogger(agent_log.LOGGER_NAME).propagate)
    with set_up(DEBUG, redactor=Redactor(), logs=tmp_path, stream=io.StringIO()):
        assert len(root.handlers) == len(before[1]) + 2
    after = (root.level, list(root.handlers), logging.getLogger(agent_log.LOGGER_NAME).propagate)
    assert after == before


@requirement("case.t25")
@pytest.mark.parametrize("level", [LogLevel.INFO, LogLevel.DEBUG])
def test_the_address_of_a_bot_is_logged_without_its_token(level: LogLevel, tmp_path: Path) -> None:
    stream = io.StringIO()
    url = "https://api.telegram.org/bot123:AAA/sendMessage"
    config = LoggingConfig(level=level)
    with set_up(config, redactor=Redactor(), logs=tmp_path, stream=stream):
        # The library of the requests names every address on its own.
        logging.getLogger("httpx").info("HTTP Request: POST %s", url)
        logger.info("asking %s", url)
        try:
            raise OSError(url) from RuntimeError(f"<Request('POST', '{url}')>")
        except OSError:
            logger.exception("delivery failed")
    for written in (stream.getvalue(), (tmp_path / "gateway.log").read_text()):
        assert "AAA" not in written
        assert "HTTP Request" not in written
        assert written.count("https://api.telegram.org/bot***/sendMessage") == 3
