"""What every process of ours is put together from: the provider, the host, how it is told to end."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.ports import Clock, ModelProvider

if TYPE_CHECKING:
    from gateway.config.channels import ChannelSettings
    from gateway.config.home import Home
    from gateway.config.schema import Config
    from gateway.providers.models import ConfiguredModels
    from gateway.runtime.model_choice import FindModel
    from gateway.runtime.overrides import ChannelOverride, Overrides
    from gateway.runtime.runtime import Runtime
    from mcp_host.host import LoadServers, McpHost

logger = logging.getLogger(__name__)


def program_version() -> str:
    """Return the installed version."""
    from importlib.metadata import version

    return version("hermes-gateway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """What answers: `default` unless a channel has its own, or `find` gave the one that was chosen."""

    default: ModelProvider
    find: "FindModel"
    overrides: "Overrides"


@asynccontextmanager
async def open_models(config: "Config", environ: Mapping[str, str]) -> AsyncGenerator[Models]:
    """Give every model of the configuration; `environ` has the profile's own variables too.

    Raises:
        ConfigError: The configured model cannot be used.
    """
    from gateway.providers.config import keys_from
    from gateway.providers.guided import Guided
    from gateway.providers.models import open_models
    from gateway.runtime.overrides import Overrides

    async with open_models(config.model, keys=keys_from(environ)) as models:
        channels = {
            account: {chat: _override(models, chat, found) for chat, found in entries.items()}
            for account, entries in config.channels.items()
        }
        yield Models(
            default=models.default or Guided(),
            find=models.find,
            overrides=Overrides(channels=channels),
        )


def _override(
    models: "ConfiguredModels", chat: str, settings: "ChannelSettings"
) -> "ChannelOverride":
    from gateway.domain.errors import ModelRejected
    from gateway.runtime.deterministic import refusing
    from gateway.runtime.overrides import ChannelOverride

    provider = None if settings.model is None else models.of(settings.model)
    if settings.broken:
        provider = refusing(ModelRejected(f"of chat {chat}", settings.broken))
    return ChannelOverride(provider=provider, system_prompt=settings.system_prompt)


@asynccontextmanager
async def open_host(
    home: "Home",
    config: "Config",
    clock: Clock,
    reload: "LoadServers",
    *,
    on_demand: bool = False,
    provider: ModelProvider | None = None,
) -> AsyncGenerator["McpHost"]:
    from mcp_host.host import open_host

    async with open_host(
        config.mcp_servers,
        mcp=config.mcp,
        clock=clock,
        stderr_log=home.mcp_stderr_log,
        schema_cache=home.schema_cache,
        tokens=home.mcp_tokens,
        version=program_version(),
        reload=reload,
        on_demand=on_demand,
        # Guided mode is no model: it cannot answer a server.
        models=None if provider is None or provider.asks_person else provider,
    ) as host:
        yield host


@contextmanager
def ending_on_signal(runtime: "Runtime", *, hard: bool = False) -> Generator[list[signal.Signals]]:
    """Drain at the first SIGTERM or SIGINT; the second ends at once, as the signal does.

    Yields the list that gets the first. `hard`: a second SIGINT unwinds nothing either.
    """
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    received: list[signal.Signals] = []

    def end(which: signal.Signals) -> None:
        received.append(which)
        if hard and len(received) > 1:
            end_at_once()
        for number in signals:
            if hard:
                # Beside the loop, which may be held; what it has in its queue still comes here.
                signal.signal(number, signal.SIG_DFL)
            else:
                loop.remove_signal_handler(number)
        logger.info("%s: draining", which.name)
        runtime.stop()

    for number in signals:
        loop.add_signal_handler(number, end, number)
    try:
        yield received
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


def end_at_once() -> None:
    """End this process now: what is under way is taken up at the next start."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)
