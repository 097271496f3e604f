"""What all connections of one server have in common, so that its limits and counts are one."""

import asyncio
from contextlib import nullcontext

from gateway.ports import Clock, ModelProvider
from mcp_host.sampler import Sampler
from mcp_host.server_config import ServerConfig, Trust
from mcp_host.statistics import AnswerCount, CallTimes


class Shared:
    """Made once for an entry; `asks` is true once its server asked without saying in which call."""

    def __init__(
        self,
        server: str,
        config: ServerConfig,
        *,
        clock: Clock,
        models: ModelProvider | None = None,
        asks: bool = False,
    ) -> None:
        self.asks = asks
        self.times = CallTimes()
        self.answers = AnswerCount()
        self.turns = asyncio.Lock() if config.exclusive else nullcontext()
        self.sampler = Sampler(
            server,
            config.sampling,
            models=models,
            asks_first=config.trust is Trust.UNTRUSTED,
            clock=clock,
        )
