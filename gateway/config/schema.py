"""The whole configuration as one value, composed of each package's own section."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.config.channels import Channels, ChannelSettings
from gateway.domain.ids import Account
from gateway.providers.config import ModelConfig
from gateway.runtime.config import (
    AccessConfig,
    ApprovalsConfig,
    GatewayConfig,
    ToolSearchConfig,
)
from gateway.telemetry.config import LoggingConfig
from mcp_host.bridge.config import BridgeConfig
from mcp_host.server_config import McpConfig, ServerConfig
from store.config import StoreConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsConfig:
    """Section `tools`."""

    tool_search: ToolSearchConfig = field(default_factory=ToolSearchConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What is in force. `model` None is guided mode; `workspace` is absolute and never moves.

    `platforms` and `web` are kept resolved as they are written: each platform's adapter reads its
    own section, and nothing of this version reads `web`.
    """

    workspace: Path
    model: ModelConfig | None = field(default=None, repr=False)
    gateway: GatewayConfig = field(default_factory=GatewayConfig)
    approvals: ApprovalsConfig = field(default_factory=ApprovalsConfig)
    access: AccessConfig = field(default_factory=AccessConfig)
    tools: ToolsConfig = field(default_factory=ToolsConfig)
    mcp: McpConfig = field(default_factory=McpConfig)
    mcp_servers: Mapping[str, ServerConfig] = field(
        default_factory=dict[str, ServerConfig], repr=False
    )
    store: StoreConfig = field(default_factory=StoreConfig, repr=False)
    logging: LoggingConfig = field(default_factory=LoggingConfig)
    platforms: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    channels: Channels = field(
        default_factory=dict[Account, Mapping[str, ChannelSettings]], repr=False
    )
    mcp_serve: BridgeConfig = field(default_factory=BridgeConfig)
    web: Mapping[str, object] = field(default_factory=dict[str, object])
