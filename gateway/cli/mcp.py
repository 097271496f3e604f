"""`hermes mcp`: which servers are configured, whether one works, and one call by hand."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from gateway.cli.errors import CommandFailed, ExitCode, NoSuch
from gateway.cli.invocation import Invocation, home_of, invocation_of
from gateway.cli.output import print_data, print_json, say

if TYPE_CHECKING:
    from gateway.app.servers import Entry, Operator, Request, Tested
    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from gateway.domain.canonical import CanonicalJson
    from gateway.domain.tools import ToolResult, ToolSpec
    from gateway.telemetry.redact import Redactor

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List, test and call the configured MCP servers.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A server of mcp_servers.")]

SKIPPED: Final = "skipped"
"""The state of an entry that cannot be used."""


@app.command("list")
def list_servers(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """List the configured servers; state and tools are those of the running gateway, if any."""
    import asyncio

    from gateway.app.servers import entries

    _, loaded = _load(ctx)
    found = entries(loaded)
    running = asyncio.run(_running(ctx))
    rows = [_row(entry, running) for entry in found]
    if as_json:
        print_json({"servers": rows})
        return
    for row in rows:
        print_data(_line(row))
    if not rows:
        say("no MCP server is configured")


@app.command("test")
def check(
    ctx: typer.Context,
    name: Name,
    *,
    call: Annotated[
        tuple[str, str] | None,
        typer.Option("--call", metavar="TOOL JSON", help="Call this tool too."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Connect to one server and list its tools; exit 1 when that fails, 3 without such a server."""
    import asyncio

    from gateway.app.servers import check_server

    request = None if call is None else _request(*call)
    home, loaded = _load(ctx)
    entry = _entry(loaded, name)
    if entry is None:
        if as_json:
            print_json(_empty_report(name, "is not configured"))
        raise NoSuch("server", name)
    redactor = _redactor(loaded)
    with _logs(home, loaded, redactor):
        operator = _operator(yes=False)
        tested = asyncio.run(check_server(home, loaded, entry, request=request, operator=operator))
    report = _report(name, tested, request, redactor)
    if as_json:
        print_json(report)
    else:
        _tell_report(report)
    if not report["ok"]:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def call(
    ctx: typer.Context,
    name: Name,
    tool: Annotated[
        str, typer.Argument(metavar="TOOL", help="The server's own name, or an alias.")
    ],
    arguments: Annotated[str, typer.Argument(metavar="JSON", help='An object: {"text": "hello"}')],
    *,
    yes: Annotated[
        bool, typer.Option("--yes", help="Allow the call, where an approval is needed.")
    ] = False,
) -> None:
    """Call one tool, as a chat would, and print its result as JSON.

    What needs an approval is asked at the terminal; without one and without --yes it is not run.
    """
    import asyncio

    from gateway.app.servers import call_tool
    from gateway.domain.tools import CallState

    request = _request(tool, arguments)
    home, loaded = _load(ctx)
    entry = _entry(loaded, name)
    if entry is None:
        raise NoSuch("server", name)
    redactor = _redactor(loaded)
    for warning in entry.warnings:
        say(f"warning: {redactor.redact(warning)}")
    with _logs(home, loaded, redactor):
        operator = _operator(yes=yes)
        result = asyncio.run(call_tool(home, loaded, entry, request, operator=operator))
    shown = _called(request, result, redactor)
    print_json({"server": name, **shown})
    if result.state is not CallState.OK:
        raise CommandFailed(str(shown["text"]) or f"{tool} failed")


# --- what the commands share --------------------------------------------------------


def _load(ctx: typer.Context) -> "tuple[Home, Loaded]":
    from gateway.config.load import load

    invocation: Invocation = invocation_of(ctx)
    home = home_of(ctx)
    loaded = load(home, environ=invocation.environ)
    invocation.secrets = loaded.secrets
    for finding in loaded.findings.errors:
        if finding.path == "mcp_servers":
            say(str(finding))
    return home, loaded


def _entry(loaded: "Loaded", name: str) -> "Entry | None":
    from gateway.app.servers import entries

    return next((entry for entry in entries(loaded) if entry.name == name), None)


def _redactor(loaded: "Loaded") -> "Redactor":
    from gateway.telemetry.redact import Redactor

    return Redactor(loaded.secrets)


def _logs(home: "Home", loaded: "Loaded", redactor: "Redactor") -> Any:
    from gateway.telemetry.logging import set_up

    home.create()
    return set_up(loaded.config.logging, redactor=redactor, logs=home.logs, stream=None)


def _request(tool: str, arguments: str) -> "Request":
    from gateway.app.servers import Request
    from gateway.domain.canonical import NotCanonical, canonical, parse_json

    try:
        value = parse_json(arguments)
        if not isinstance(value, dict):
            raise typer.BadParameter("must be a JSON object", param_hint="JSON")
        return Request(tool=tool, arguments=canonical(cast("dict[str, object]", value)))
    except NotCanonical as error:
        raise typer.BadParameter(f"is no proper JSON: {error}", param_hint="JSON") from error


# --- asking the operator ------------------------------------------------------------


def _operator(*, yes: bool) -> "Operator":
    from gateway.app.servers import Operator

    return Operator(yes=yes, ask=_ask if _at_terminal() else None)


def _at_terminal() -> bool:
    # A stream is None when its descriptor was closed before the start.
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)  # pyright: ignore[reportUnnecessaryComparison]


async def _ask(spec: "ToolSpec", arguments: "CanonicalJson") -> bool:
    from gateway.domain.text import show_escapes
    from gateway.runtime.redact import shown_arguments

    say(f"Server {show_escapes(spec.server)} wants to run {show_escapes(spec.name)} with")
    say(shown_arguments(arguments, redact=()))
    say("Allow it? [y/N]")
    return (await _typed_line()).strip().casefold() in {"y", "yes"}


async def _typed_line() -> str:
    """Wait for a line without blocking the loop: Ctrl-C must end the wait."""
    import asyncio

    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    descriptor = sys.stdin.fileno()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)
    return sys.stdin.readline()


# --- list ---------------------------------------------------------------------------


async def _running(ctx: typer.Context) -> Mapping[str, Mapping[str, Any]]:
    """Return the running gateway's servers by name; none when none answers."""
    from gateway.control.client import SocketClient
    from gateway.domain.errors import ControlError

    client = SocketClient.of(home_of(ctx).path, environ=invocation_of(ctx).environ)
    try:
        status = await client.status()
    except ControlError:
        return {}
    return {str(item["name"]): item for item in status["mcp_servers"]}


def _row(entry: "Entry", running: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    from gateway.domain.tools import ServerState

    config = entry.config
    now = running.get(entry.name)
    if config is None:
        state, reason = SKIPPED, entry.problem
    elif now is not None:
        state, reason = str(now["state"]), str(now["reason"])
    elif config.enabled:
        state, reason = ServerState.CLOSED.value, "no running gateway has it"
    else:
        state, reason = ServerState.DISABLED.value, ""
    tools = None if config is None else config.tools
    return {
        "name": entry.name,
        "transport": None if config is None else config.transport.value,
        "enabled": None if config is None else config.enabled,
        "trust": None if config is None else config.trust.value,
        "auth": None if config is None else "none",
        "state": state,
        "reason": reason,
        "tools": None if now is None else now["tools"],
        "filter": None
        if tools is None
        else {
            "include": None if tools.include is None else list(tools.include),
            "exclude": list(tools.exclude),
        },
    }


def _line(row: Mapping[str, Any]) -> str:
    parts = [f"{row['name']} {row['state']}"]
    if row["tools"] is not None:
        parts.append(f"{row['tools']} tools")
    if row["trust"] is not None:
        parts += [row["transport"], f"trust {row['trust']}"]
    if row["filter"] is not None:
        parts += _filter_words(row["filter"]["include"], row["filter"]["exclude"])
    reason = f": {row['reason']}" if row["reason"] else ""
    return f"{', '.join(parts)}{reason}"


def _filter_words(include: Sequence[str] | None, exclude: Sequence[str]) -> Iterable[str]:
    if include is not None:
        yield f"include {' '.join(include)}" if include else "no tools (include is empty)"
    elif exclude:
        yield f"exclude {' '.join(exclude)}"


# --- test ---------------------------------------------------------------------------


def _report(
    name: str, tested: "Tested", request: "Request | None", redactor: "Redactor"
) -> dict[str, Any]:
    from gateway.domain.tools import CallState

    agreed, called = tested.agreed, tested.call
    report = _empty_report(name, redactor.redact(tested.error))
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
    if called is not None and request is not None:
        report["call"] = _called(request, called, redactor)
        if called.state is CallState.OK:
            report["proved"].append(f"{request.tool} works with these arguments")
            report["not_proved"] = ["that its other tools work"]
        else:
            report |= {"ok": False, "error": report["call"]["text"] or f"{request.tool} failed"}
    report["not_proved"].append("that no other server's tool has the same alias")
    return report


def _empty_report(name: str, error: str) -> dict[str, Any]:
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


def _called(request: "Request", result: "ToolResult", redactor: "Redactor") -> dict[str, Any]:
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


def _tell_report(report: Mapping[str, Any]) -> None:
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
