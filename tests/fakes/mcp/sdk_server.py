"""An MCP server of the Python SDK whose tool asks a person; speaks both eras, over stdio or HTTP.

As a script it serves stdio and appends its process id to the file that it is given.
"""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Elicit, MCPServer, Resolve
from mcp.server.mcpserver.resolve import ElicitationResult
from pydantic import BaseModel


class Word(BaseModel):
    word: str


def question(text: str) -> Elicit[Word]:
    return Elicit(f"A word for {text}?", Word)


def make() -> MCPServer:
    """Return a server with the tools `ask` and `echo`."""
    server = MCPServer("sdk", version="1", log_level="ERROR")

    @server.tool()
    async def ask(text: str, answer: Annotated[ElicitationResult[Word], Resolve(question)]) -> str:
        """Ask for a word and return it behind the text."""
        word = answer.data.word if answer.action == "accept" else answer.action
        return f"{text}: {word}"

    @server.tool()
    async def echo(text: str) -> str:
        """Return the text."""
        return text

    return server


@asynccontextmanager
async def serve_http() -> AsyncGenerator[str]:
    """Serve on 127.0.0.1 until the end of the block; yields the URL."""
    app = make().streamable_http_app()
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[bound]), name="sdk server")
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await asyncio.wait({serving})


if __name__ == "__main__":
    with Path(sys.argv[1]).open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    make().run("stdio")
