"""`hermes pairing`: who waits with a code, letting them in, and taking that back.

Listing needs no gateway. A change goes through the running one; without one, the home is held for
that moment.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from gateway.cli.errors import CommandFailed, NoSuch
from gateway.cli.invocation import home_of, invocation_of
from gateway.cli.output import print_data, print_json, say
from gateway.domain.errors import GatewayNotRunning, GatewayRefused

if TYPE_CHECKING:
    from gateway.runtime.pairing import Found

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List the codes that strangers were given, let their holders in, or out again.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

MAX_LISTED: Final = 1_000
APPROVE: Final = "approve"
REVOKE: Final = "revoke"


@app.command("list")
def list_all(
    ctx: typer.Context,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Former ones too.")] = False,
    as_json: AsJson = False,
) -> None:
    """List who waits with a code, and who was let in; codes are not kept."""
    import asyncio

    found = asyncio.run(_pairings(ctx, everything=everything))
    if as_json:
        print_json({"pairings": found})
        return
    for item in found:
        print_data(_line(item))
    if not found:
        say("nobody was given a code yet" if everything else "nobody waits, and nobody is paired")


@app.command()
def approve(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(metavar="[PLATFORM] CODE", help="The code, after its platform if need be."),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Let the holder of a code write to the bot in direct messages."""
    platform, code = _platform_and(words, "CODE")
    done = _change(ctx, {"action": APPROVE, "platform": platform, "code": code})
    _tell(done, "may now write to the bot in direct messages", as_json=as_json)


@app.command()
def revoke(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[PLATFORM] USER", help="The user id, after its platform if need be."
        ),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Let somebody in no more, or make their code worth nothing."""
    platform, user = _platform_and(words, "USER")
    done = _change(ctx, {"action": REVOKE, "platform": platform, "user": user})
    _tell(done, "is paired no more", as_json=as_json)


def _platform_and(words: Sequence[str], what: str) -> tuple[str, str]:
    match words:
        case [word]:
            return "", word
        case [platform, word]:
            return platform, word
        case _:
            raise typer.BadParameter(f"give [PLATFORM] {what}")


async def _pairings(ctx: typer.Context, *, everything: bool) -> Sequence[Mapping[str, Any]]:
    from datetime import UTC, datetime

    from gateway.app.offline import open_reading
    from gateway.control.shapes import pairing_json
    from gateway.domain.operations.pairing import PairingState

    states = tuple(PairingState)
    if not everything:
        states = (PairingState.PENDING, PairingState.APPROVED)
    now = datetime.now(UTC)
    async with open_reading(home_of(ctx)) as readers:
        found = () if readers is None else await readers.pairings.page(*states, limit=MAX_LISTED)
    return [pairing_json(item) for item in found if everything or not item.has_run_out(now)]


def _change(ctx: typer.Context, change: Mapping[str, str]) -> Mapping[str, Any]:
    import asyncio

    from gateway.control.client import SocketClient

    client = SocketClient.of(home_of(ctx).path, environ=invocation_of(ctx).environ)
    try:
        return asyncio.run(client.pair(change))["pairing"]
    except GatewayNotRunning:
        return asyncio.run(_change_offline(ctx, change))
    except GatewayRefused as error:
        if error.code == "not_found":
            raise _nobody(change) from error
        if error.code == "ambiguous_target":
            accounts = cast("Sequence[str]", error.details["candidates"])
            raise _which(change, accounts) from error
        raise


async def _change_offline(ctx: typer.Context, change: Mapping[str, str]) -> Mapping[str, Any]:
    from gateway.app.offline import open_deciding
    from gateway.config.load import load
    from gateway.control.operators import operator_here
    from gateway.control.shapes import pairing_json
    from gateway.runtime.pairing import NoPairing, Which

    invocation, home, actor = invocation_of(ctx), home_of(ctx), operator_here()
    loaded = load(home, environ=invocation.environ)
    invocation.secrets = loaded.secrets
    platform = change["platform"]
    found: Found
    async with open_deciding(
        home, loaded, environ=invocation.environ, operator=str(actor)
    ) as offline:
        if change["action"] == APPROVE:
            found = await offline.pairing.approve(change["code"], platform=platform, by=actor)
        else:
            found = await offline.pairing.revoke(change["user"], platform=platform, by=actor)
    if isinstance(found, NoPairing):
        raise _nobody(change)
    if isinstance(found, Which):
        raise _which(change, found.accounts)
    return pairing_json(found)


def _nobody(change: Mapping[str, str]) -> NoSuch:
    if change["action"] == REVOKE:
        return NoSuch("paired person", change["user"])
    return NoSuch("waiting code", f"{change['code']}; each is good for one hour, and once")


def _which(change: Mapping[str, str], accounts: Sequence[str]) -> CommandFailed:
    word = "CODE" if change["action"] == APPROVE else change["user"]
    choices = " or ".join(f"hermes pairing {change['action']} {name} {word}" for name in accounts)
    return CommandFailed(f"that is on several platforms; say which: {choices}")


def _tell(done: Mapping[str, Any], what: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"pairing": done})
        return
    say(f"{_who(done)} {what}")


def _who(item: Mapping[str, Any]) -> str:
    account = f"@{item['account']}" if item["account"] else ""
    name = f" ({item['user_name']})" if item["user_name"] else ""
    return f"{item['platform']}{account}:{item['user_id']}{name}"


def _line(item: Mapping[str, Any]) -> str:
    decided = f", by {item['decided_by']}" if item["decided_by"] else ""
    return f"{_who(item)} {item['state']}{decided}"
