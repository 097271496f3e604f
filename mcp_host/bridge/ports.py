"""What the bridge is given: the store to read, and the running gateway to act through."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.domain.canonical import CanonicalJson
from gateway.ports import Channels, Conversations, EventReader, GatewayClient, Questions
from gateway.ports.files import Media
from mcp_host.bridge.folders import Folders


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgePorts:
    """`shown` returns arguments as their card shows them: secrets by key name hidden.

    `media` keeps the files of messages; files to send come from `folders`.
    """

    events: EventReader
    conversations: Conversations
    questions: Questions
    channels: Channels
    gateway: GatewayClient
    media: Media
    folders: Folders
    shown: Callable[[CanonicalJson], object]
