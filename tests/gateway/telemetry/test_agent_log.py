import re
from pathlib import Path

from gateway.telemetry import agent_log
from gateway.telemetry.config import LoggingConfig
from gateway.telemetry.logging import set_up
from gateway.telemetry.redact import Redactor
from tests.support.requirement import requirement


@requirement("config.home.agent_log")
def test_each_event_is_one_line_of_keys_and_values(tmp_path: Path) -> None:
    with set_up(LoggingConfig(), redactor=Redactor(), logs=tmp_path, stream=None):
        agent_log.model_call(
            conversation="c1", model="openai:gpt", ms=812.4, outcome="ok", input_tokens=9
        )
        agent_log.tool_call(
            conversation="c1",
            server="notes",
            tool="add",
            ms=3,
            outcome="error",
            error='no "title"\nsecond line',
        )
        agent_log.connect(server="notes", ms=120, outcome="ok")
        agent_log.discovery(server="notes", ms=8, tools=3)
        agent_log.park(server="notes", reason="exit code 1", retry_in=300)
        agent_log.refresh(server="notes", ms=2, tools=4)
    lines = (tmp_path / "agent.log").read_text().splitlines()
    assert [re.sub(r"^\S+Z ", "", line) for line in lines] == [
        "model_call conversation=c1 model=openai:gpt ms=812 outcome=ok input_tokens=9 output_tokens=0",
        'tool_call conversation=c1 server=notes tool=add ms=3 outcome=error error="no \\"title\\""',
        "connect server=notes ms=120 outcome=ok",
        "discovery server=notes ms=8 tools=3",
        'park server=notes reason="exit code 1" retry_in=300',
        "refresh server=notes ms=2 tools=4",
    ]


def test_a_long_error_is_cut(tmp_path: Path) -> None:
    with set_up(LoggingConfig(), redactor=Redactor(), logs=tmp_path, stream=None):
        agent_log.connect(server="s", ms=1, outcome="error", error="x" * 1000)
    assert len((tmp_path / "agent.log").read_text()) < 400
