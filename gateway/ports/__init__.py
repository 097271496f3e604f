"""What the core needs from the outside, as protocols it owns.

The store is asked with single values (`gateway.domain.operations`), so nobody holds a transaction;
reading is separate, in small ports.
"""

from gateway.ports.chats import (
    Adapter,
    Capabilities,
    CardView,
    EventSink,
    HealthReporting,
    PressAnswering,
    Reacting,
    Renderer,
    Streaming,
    Typing,
)
from gateway.ports.clock import Clock
from gateway.ports.files import FileFetching, Files, FileStore, Media
from gateway.ports.programs import (
    Decided,
    GatewayClient,
    PermissionRequest,
    SendRequest,
    SendResult,
)
from gateway.ports.reading import (
    Books,
    Channels,
    Conversations,
    Deliveries,
    EventReader,
    Inbox,
    Pairings,
    Questions,
    Readers,
    Rules,
    SentMessages,
    StoreHealth,
)
from gateway.ports.work import (
    Approval,
    Approver,
    FormRequest,
    ModelProvider,
    SamplingRequest,
    ToolHost,
)
from gateway.ports.writing import (
    DeliveryStore,
    InboundStore,
    PairingStore,
    QuestionStore,
    Store,
    TurnStore,
    UpkeepStore,
)

__all__ = [
    "Adapter",
    "Approval",
    "Approver",
    "Books",
    "Capabilities",
    "CardView",
    "Channels",
    "Clock",
    "Conversations",
    "Decided",
    "Deliveries",
    "DeliveryStore",
    "EventReader",
    "EventSink",
    "FileFetching",
    "FileStore",
    "Files",
    "FormRequest",
    "GatewayClient",
    "HealthReporting",
    "InboundStore",
    "Inbox",
    "Media",
    "ModelProvider",
    "PairingStore",
    "Pairings",
    "PermissionRequest",
    "PressAnswering",
    "QuestionStore",
    "Questions",
    "Reacting",
    "Readers",
    "Renderer",
    "Rules",
    "SamplingRequest",
    "SendRequest",
    "SendResult",
    "SentMessages",
    "Store",
    "StoreHealth",
    "Streaming",
    "ToolHost",
    "TurnStore",
    "Typing",
    "UpkeepStore",
]
