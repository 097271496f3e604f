"""A bridge over a store of a test and a gateway that only listens, with the SDK's own client."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as wire
from mcp import Client

from gateway.config.home import Home, make_private
from gateway.config.media import MediaFolder
from gateway.domain.errors import GatewayError
from gateway.domain.ids import DeliveryId
from gateway.domain.question import Action, Surface
from gateway.ports import Decided, EventReader, PermissionRequest, SendRequest, SendResult
from mcp_host.bridge.config import BridgeConfig
from mcp_host.bridge.folders import Folders
from mcp_host.bridge.ports import BridgePorts
from mcp_host.bridge.server import Bridge
from store.readers import OpenReaders

Json = Mapping[str, Any]


@dataclass
class Listening:
    """Implements `GatewayClient`: keeps what it is asked, and answers or refuses."""

    refusal: GatewayError | None = None
    votes_needed: int = 0
    question: str = ""
    permissions: list[PermissionRequest] = field(default_factory=list[PermissionRequest])
    sends: list[SendRequest] = field(default_factory=list[SendRequest])
    decisions: list[tuple[str, Action, Surface, str]] = field(
        default_factory=list[tuple[str, Action, Surface, str]]
    )

    async def send(self, request: SendRequest) -> SendResult:
        self.sends.append(request)
        if self.refusal is not None:
            raise self.refusal
        return SendResult(
            platform="telegram", chat="42", message_ids=("7", "8"), delivery=DeliveryId(1)
        )

    async def decide(
        self, question: str, *, action: Action, surface: Surface = Surface.CLI, reason: str = ""
    ) -> Decided:
        self.decisions.append((question, action, surface, reason))
        if self.refusal is not None:
            raise self.refusal
        return Decided(question=question, action=action, votes_needed=self.votes_needed)

    async def ask_permission(self, request: PermissionRequest) -> str:
        self.permissions.append(request)
        if self.refusal is not None:
            raise self.refusal
        return self.question


def _shown(arguments: str) -> object:
    value: dict[str, object] = json.loads(arguments)
    return {key: "•••• (6 chars)" if key == "password" else item for key, item in value.items()}


def bridge_over(
    readers: OpenReaders,
    folder: Path,
    *,
    gateway: Listening | None = None,
    config: BridgeConfig | None = None,
    events: EventReader | None = None,
) -> Bridge:
    """Put a bridge together; files may be sent from `folder / "out"`."""
    ports, home = readers.ports, Home(folder)
    make_private(home.media)
    return Bridge(
        BridgePorts(
            events=events or ports.events,
            conversations=ports.conversations,
            questions=ports.questions,
            channels=ports.channels,
            gateway=gateway or Listening(),
            media=MediaFolder(home),
            folders=Folders([folder / "out"], working=folder),
            shown=_shown,
        ),
        config or BridgeConfig(),
        version="1",
    )


class Caller:
    """A client of the bridge. Its SDK holds every result to the tool's own schema."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def tools(self) -> Sequence[wire.Tool]:
        return (await self.client.list_tools()).tools

    async def result(self, tool: str, **arguments: object) -> wire.CallToolResult:
        return await self.client.call_tool(tool, arguments)

    async def ok(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Return what a call gives that must not fail."""
        result = await self.result(tool, **arguments)
        assert not result.is_error, result.content
        assert result.structured_content is not None
        return result.structured_content

    async def failure(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Return what a call says that must fail."""
        result = await self.result(tool, **arguments)
        assert result.is_error
        (block,) = result.content
        assert isinstance(block, wire.TextContent)
        said: dict[str, Any] = json.loads(block.text)
        assert result.structured_content == said
        return said


@asynccontextmanager
async def calling(
    bridge: Bridge, *, era: str = "legacy", name: str = "test"
) -> AsyncGenerator[Caller]:
    """Connect a client of that era and name to a bridge in this process."""
    await bridge.begin()
    info = wire.Implementation(name=name, version="1")
    async with Client(bridge.build(), mode=era, client_info=info) as client:
        yield Caller(client)
