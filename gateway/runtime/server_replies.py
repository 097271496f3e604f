"""What people are told of MCP servers: a line for each, one in detail, and how their start went. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from gateway.domain.tools import ServerState, ServerStatus
from gateway.runtime.cards import clock_time, one_line

MAX_NOTE: Final = 500
LAZY: Final = "lazy, starts on first use"


def counted(number: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def tools_shown(number: int, *, sleeps: bool) -> str:
    """Return how many tools a server has, and that it does not run when it sleeps (SPEC §7)."""
    return f"{counted(number, 'tool')}{f' ({LAZY})' if sleeps else ''}"


def server_line(status: ServerStatus) -> str:
    """Return a server's line of `/mcp`."""
    tools = tools_shown(status.tools, sleeps=status.state is ServerState.LAZY)
    parts = [f"**{one_line(status.name)}** {status.state.value}, {tools}"]
    if status.reason:
        parts.append(one_line(status.reason, MAX_NOTE))
    if status.next_probe_at is not None:
        parts.append(f"next try at {clock_time(status.next_probe_at)}")
    return ": ".join(parts)


def server_detail(status: ServerStatus) -> str:
    """Return what `/mcp NAME` says: the line, what became of the tools, and the numbers."""
    selection = status.selection
    kept_out = sum(selection.filtered.values())
    lines = [
        f"found {selection.found}, registered {status.tools}, filtered {kept_out}, "
        f"collided {len(selection.collided)}",
        *(one_line(note, MAX_NOTE) for note in status.notes),
        *_utilities_off(selection.utilities_off.items()),
        *_numbers(status),
    ]
    return "\n".join([server_line(status), *(f"- {line}" for line in lines)])


def started(servers: Sequence[ServerStatus]) -> str:
    """Say in one line how the servers' start went."""
    states = Counter(item.state for item in servers)
    said = [f"{states[ServerState.READY]} ok", f"{states[ServerState.PARKED]} parked"]
    connecting = states[ServerState.CONNECTING]
    if connecting:
        said.append(f"{connecting} still connecting")
    lazy = states[ServerState.LAZY]
    if lazy:
        said.append(f"{lazy} lazy, not spawned yet")
    return f"MCP servers: {', '.join(said)}"


def _utilities_off(off: Iterable[tuple[str, str]]) -> Iterable[str]:
    reasons: dict[str, list[str]] = {}
    for name, why in off:
        reasons.setdefault(why, []).append(name)
    return [f"no {' and '.join(names)}: {one_line(why)}" for why, names in reasons.items()]


def _numbers(status: ServerStatus) -> Iterable[str]:
    numbers = status.statistics
    if numbers.calls:
        times = f", p50 {numbers.p50_ms} ms, p95 {numbers.p95_ms} ms"
        yield f"{counted(numbers.calls, 'call')}, {counted(numbers.errors, 'error')}{times}"
    if numbers.connections > 1 or numbers.most_connections > 1:
        open_now = f"{numbers.connections} of at most {numbers.most_connections} connections"
        yield f"its questions keep conversations apart: {open_now} open"
    if numbers.restarts:
        yield f"restarted {counted(numbers.restarts, 'time')}"
    asked = numbers.elicitation
    if asked.requests:
        yield (
            f"asked people {counted(asked.requests, 'time')}: {asked.accepted} accepted, "
            f"{asked.declined} declined, {asked.cancelled} cancelled, {asked.errors} failed"
        )
    if numbers.sampling.get("requests"):
        parts = [f"{name.replace('_', ' ')} {value}" for name, value in numbers.sampling.items()]
        yield f"asked the model: {', '.join(parts)}"
