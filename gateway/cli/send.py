"""`hermes send`: a message through the running gateway, and the platform's id for it; the targets."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.errors import CommandFailed
from gateway.cli.invocation import home_of, invocation_of
from gateway.cli.output import print_data, print_json, say
from gateway.domain.conversation import Channel

if TYPE_CHECKING:
    from gateway.ports import Readers

app = typer.Typer(add_completion=False, rich_markup_mode=None)

MAX_BYTES: Final = 900_000
"""Of a message; a request of the control API takes a little more."""

STDIN: Final = "-"
PAGE: Final = 200
MAX_LISTED: Final = 10_000


@app.command()
def send(
    ctx: typer.Context,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT|-]", help="The message; - reads stdin.")
    ] = None,
    *,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="TARGET", help="platform, platform:chat[:thread], #name"),
    ] = None,
    file: Annotated[
        str | None, typer.Option("-f", "--file", metavar="FILE", help="Send what a file holds.")
    ] = None,
    attach: Annotated[
        list[str] | None,
        typer.Option("--attach", metavar="PATH", help="Send this file along; repeatable."),
    ] = None,
    targets: Annotated[
        bool, typer.Option("--list", help="Print the known targets and send nothing.")
    ] = False,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", help="For the platform's id.", min=0)
    ] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Post a message as the bot, and return once the platform has it: prints its message id.

    Needs a running gateway; without one nothing is queued. A platform alone means its home channel.
    """
    import asyncio

    if targets:
        if text is not None or file is not None or attach:
            raise typer.BadParameter("--list sends nothing: leave out the message")
        asyncio.run(_list(ctx, to, as_json=as_json))
        return
    if to is None:
        raise typer.BadParameter("give --to TARGET, or --list to see the targets")
    from gateway.control.client import SocketClient
    from gateway.ports import SendRequest

    request = SendRequest(
        target=to,
        text=_text(text, file, is_needed=not attach),
        attachments=tuple(_absolute(path) for path in attach or ()),
        wait_ms=round(wait * 1000),
    )
    client = SocketClient.of(home_of(ctx).path, environ=invocation_of(ctx).environ)
    sent = asyncio.run(client.send(request))
    if as_json:
        print_json(
            {
                "success": True,
                "platform": sent.platform,
                "chat_id": sent.chat,
                "thread_id": sent.thread or None,
                "message_id": sent.message_ids[0],
                "message_ids": list(sent.message_ids),
                "delivery_id": str(sent.delivery),
            }
        )
        return
    for identifier in sent.message_ids:
        print_data(identifier)


async def _list(ctx: typer.Context, platform: str | None, *, as_json: bool) -> None:
    """Print the targets of the store, with or without a gateway; `platform` narrows them."""
    from gateway.app.offline import open_reading

    found: Sequence[Channel] = ()
    homes: set[str] = set()
    async with open_reading(home_of(ctx)) as readers:
        if readers is not None:
            found = await _channels(readers, platform)
            for name in {each.platform for each in found}:
                home = await readers.channels.resolve(name)
                homes |= {home.target} if isinstance(home, Channel) else set()
    if as_json:
        print_json(
            {
                "channels": [
                    {
                        "target": each.target,
                        "platform": each.platform,
                        "name": each.name,
                        "chat_type": each.chat_type,
                        "home": each.target in homes,
                    }
                    for each in found
                ]
            }
        )
        return
    for each in found:
        home = ", home" if each.target in homes else ""
        print_data(f"{each.target}\t{' '.join(each.name.split())} ({each.chat_type}{home})")
    if not found:
        say("no target is known yet: a chat is known once somebody wrote in it")


async def _channels(readers: "Readers", platform: str | None) -> Sequence[Channel]:
    found: list[Channel] = []
    while len(found) < MAX_LISTED:
        last = found[-1].target if found else None
        page = await readers.channels.page(platform=platform, before=last, limit=PAGE)
        found += page
        if len(page) < PAGE:
            break
    return found


def _absolute(path: str) -> str:
    """Return where a file is; a link that was named is followed here, by who may follow it."""
    return os.path.realpath(os.path.expanduser(path))


def _text(text: str | None, file: str | None, *, is_needed: bool) -> str:
    if text is None and file is None and not is_needed:
        return ""
    if (text is None) == (file is None):
        raise typer.BadParameter("give the message as TEXT, as - for stdin, or as -f FILE")
    if text is not None and text != STDIN:
        return text
    raw = sys.stdin.buffer.read(MAX_BYTES + 1) if file in {None, STDIN} else _read(file or "")
    if len(raw) > MAX_BYTES:
        raise CommandFailed(f"the message is longer than {MAX_BYTES} bytes")
    found = raw.decode("utf-8", "replace").removesuffix("\n")
    if not found.strip():
        raise CommandFailed("the message is empty")
    return found


def _read(name: str) -> bytes:
    try:
        with Path(name).open("rb") as source:
            return source.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandFailed(f"{name} cannot be read: {error.strerror}") from error
