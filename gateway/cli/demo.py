"""`hermes demo-server`: the bundled MCP server, on stdin and stdout."""

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def demo_server() -> None:
    """Serve the demo tools (notes to list, add and plan) over stdio; for MCP clients, not people."""
    from mcp_host.demo_server import main

    main()
