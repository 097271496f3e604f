"""`hermes mcp client-document`: the document that says who we are, and whether it is hosted well."""

from typing import Annotated

import typer

from gateway.cli.errors import CommandFailed
from gateway.cli.invocation import invocation_of
from gateway.cli.output import print_data, print_json


def client_document(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="Where it is, or will be, hosted.")],
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Look at what is hosted there instead.")
    ] = False,
) -> None:
    """Print the document for mcp.client_metadata_url (CIMD); exit 1 names the rule that is broken."""
    import asyncio

    from mcp_host.oauth.cimd import BadDocument, document

    try:
        wanted = document(url)
        if not check:
            print_json(wanted)
            return
        from gateway.app.logins import check_client_document

        asyncio.run(check_client_document(url, invocation_of(ctx).environ))
    except BadDocument as problem:
        raise CommandFailed(f"{url} {problem}") from problem
    print_data(f"{url} can be a client id")
