"""`hermes send`: a message through the running gateway, and the platform's id for it."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from gateway.cli.errors import CommandFailed
from gateway.cli.invocation import home_of, invocation_of
from gateway.cli.output import print_data, print_json

app = typer.Typer(add_completion=False, rich_markup_mode=None)

MAX_BYTES: Final = 900_000
"""Of a message; a request of the control API takes a little more."""

STDIN: Final = "-"


@app.command()
def send(
    ctx: typer.Context,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT|-]", help="The message; - reads stdin.")
    ] = None,
    *,
    to: Annotated[
        str, typer.Option("--to", metavar="TARGET", help="platform, platform:chat[:thread], #name")
    ],
    file: Annotated[
        str | None, typer.Option("-f", "--file", metavar="FILE", help="Send what a file holds.")
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", help="For the platform's id.", min=0)
    ] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Post a message as the bot, and return once the platform has it: prints its message id.

    Needs a running gateway; without one nothing is queued. A platform alone means its home channel.
    """
    import asyncio

    from gateway.control.client import SocketClient
    from gateway.ports import SendRequest

    request = SendRequest(target=to, text=_text(text, file), wait_ms=round(wait * 1000))
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


def _text(text: str | None, file: str | None) -> str:
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
