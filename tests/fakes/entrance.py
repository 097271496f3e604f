"""The entrance of a gateway over a store that is open, and a judge that takes everything."""

from gateway.domain.message import InboundEvent
from gateway.ports import Clock
from gateway.runtime.access import Access
from gateway.runtime.backlog import Backlog
from gateway.runtime.config import RateConfig
from gateway.runtime.entrance import TAKEN, Entrance, Taken
from gateway.runtime.pairing import PairingDesk
from gateway.runtime.wakeups import Wakeups
from store import OpenStore
from tests.fakes.loopback import PLATFORM, LoopbackRenderer


def entrance(
    opened: OpenStore,
    access: Access,
    clock: Clock,
    *,
    rate: RateConfig | None = None,
    backlog: Backlog | None = None,
    wakeups: Wakeups | None = None,
) -> Entrance:
    bells = wakeups or Wakeups()
    renderers = {PLATFORM: LoopbackRenderer()}
    return Entrance(
        access=access,
        pairing=PairingDesk(opened.store, opened.readers.pairings, renderers, access, bells, clock),
        store=opened.store,
        readers=opened.readers,
        renderers=renderers,
        backlog=backlog or Backlog(bells, clock),
        wakeups=bells,
        clock=clock,
        rate=rate or RateConfig(),
    )


class OpenGate:
    """Implements `Judge`: everything is taken."""

    async def judge(self, event: InboundEvent) -> Taken | None:
        return TAKEN

    async def tell(self, event: InboundEvent, words: str) -> None:
        raise AssertionError("there is no limit to tell of")
