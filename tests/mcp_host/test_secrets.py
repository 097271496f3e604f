from gateway.domain.tools import CallState, ToolResult
from mcp_host.secrets import without_secrets
from mcp_host.server_config import ServerConfig
from mcp_host.stderr import StderrTail, no_log
from tests.support.requirement import requirement


@requirement("threat.s13")
def test_a_result_tells_no_secret_of_its_server_wherever_it_stands() -> None:
    config = ServerConfig.model_validate(
        {
            "command": "x",
            "args": ["--api-key", "argument-secret"],
            "env": {"TOKEN": "variable-secret", "MODE": "plain-mode"},
        }
    )
    told = "argument-secret variable-secret plain-mode"
    result = ToolResult(
        call="1",
        state=CallState.OK,
        text=told,
        structured={"all": [told], "variable-secret": 1},
        meta={"it": {"is": told}},
    )

    shown = without_secrets(result, config)

    assert shown.text == "*** *** plain-mode"
    assert shown.structured == {"all": ["*** *** plain-mode"], "***": 1}
    assert shown.meta == {"it": {"is": "*** *** plain-mode"}}
    assert shown.state is CallState.OK


def test_a_result_of_a_server_without_secrets_stays_as_it_is() -> None:
    config = ServerConfig.model_validate({"command": "x", "env": {"MODE": "plain"}})
    result = ToolResult(call="1", state=CallState.OK, text="password: plain sk-0123456789abcdef")

    assert without_secrets(result, config) is result


@requirement("threat.s13")
def test_a_line_of_standard_error_is_redacted_before_it_is_cut() -> None:
    lines: list[str] = []
    tail = StderrTail(lines.append, redact=lambda line: line.replace("secret", "***"))

    tail.add(b"x" * 1_997 + b"secret")

    assert lines == ["x" * 1_997 + "***"]
    assert tail.last_line == lines[0]
    assert StderrTail(no_log).last_line == ""
