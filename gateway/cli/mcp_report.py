"""What `hermes mcp` says of one connection and one call: as JSON, and in words."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gateway.cli.output import print_data, say

if TYPE_CHECKING:
    from gateway.app.servers import Request, Tested
    from gateway.domain.tools import ToolResult
    from gateway.telemetry.redact import Redactor


def report_of(
    name: str, tested: "Tested", request: "Request | None", redactor: "Redactor"
) -> dict[str, Any]:
    """Return what `mcp test --json` prints (DESIGN §7)."""
    from gateway.domain.tools import CallState

    agreed, call = tested.agreed, tested.call
    report = empty_report(name, redactor.redact(tested.error))
    report["warnings"] = [redactor.redact(warning) for warning in tested.warnings]
    if agreed is None:
        return report
    report |= {
        "ok": True,
        "era": agreed.era.value,
        "protocol_version": agreed.protocol_version,
        "connect_ms": round(agreed.seconds * 1000),
        "tools": [
            {"name": spec.name, "alias": spec.alias, "read_only": spec.read_only}
            for spec in tested.tools
        ],
        "proved": ["it starts", "it agrees on a protocol", "it lists its tools"],
        "not_proved": ["that a tool works (--call TOOL JSON)"],
    }
    del report["error"]
    if call is not None and request is not None:
        report["call"] = called(request, call, redactor)
        if call.state is CallState.OK:
            report["proved"].append(f"{request.tool} works with these arguments")
            report["not_proved"] = ["that its other tools work"]
        else:
            report |= {"ok": False, "error": report["call"]["text"] or f"{request.tool} failed"}
    report["not_proved"].append("that no other server's tool has the same alias")
    return report


def empty_report(name: str, error: str) -> dict[str, Any]:
    """Return the report of a server that was not connected."""
    return {
        "server": name,
        "ok": False,
        "era": None,
        "protocol_version": None,
        "connect_ms": None,
        "tools": [],
        "warnings": [],
        "error": error,
        "proved": [],
        "not_proved": ["that it can be connected"],
    }


def called(request: "Request", result: "ToolResult", redactor: "Redactor") -> dict[str, Any]:
    """Return what became of a call."""
    from gateway.domain.tools import CallState

    # A failure can quote the server's last words, which may be about its variables.
    fine = result.state is CallState.OK
    shown: dict[str, Any] = {
        "tool": request.tool,
        "state": result.state.value,
        "text": result.text if fine else redactor.redact(result.text),
        "ms": result.ms,
    }
    if result.structured is not None:
        shown["structured"] = result.structured
    if result.meta:
        shown["meta"] = result.meta
    if result.attachments:
        shown["attachments"] = [
            {"kind": item.kind.value, "media_type": item.media_type, "size": item.size}
            for item in result.attachments
        ]
    return shown


def tell_report(report: Mapping[str, Any]) -> None:
    """Print a report for people."""
    for warning in report["warnings"]:
        say(f"warning: {warning}")
    if report["connect_ms"] is None:
        say(f"{report['server']}: {report['error']}")
        return
    print_data(
        f"{report['server']}: connected in {report['connect_ms']} ms, {report['era']} "
        f"(protocol {report['protocol_version']}), {len(report['tools'])} tools"
    )
    for tool in report["tools"]:
        print_data(f"  {tool['name']} ({tool['alias']}){', read-only' * tool['read_only']}")
    if "call" in report:
        print_data(f"{report['call']['tool']}: {report['call']['state']}: {report['call']['text']}")
    print_data(f"proved: {'; '.join(report['proved'])}")
    print_data(f"not proved: {'; '.join(report['not_proved'])}")
