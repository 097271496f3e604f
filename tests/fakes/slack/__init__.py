"""A stateful Slack on real loopback sockets, with people who use its workspaces.

    async with slack_server() as town:
        team = town.team()
        dm = team.direct(team.user("U1", "Ana"))
        dm.say("delete the branch")
        card = await dm.wait_for(lambda m: "Allow once" in m.labels)
        await dm.press("Allow once", message=card).acknowledged()

`town.base_url` is the app's `base_url`; its tokens are `town.app_token` and `team.token`. Socket
Mode, or posts to `town.service.outbox.request_url`. In another process it is `slack_process()`.
Limits are those of facts/platforms.md §3; blocks are judged by Slack's own models. Not modelled:
OAuth installs, Slack Connect, broadcast replies, scheduled messages, canvases, workflow steps.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from tests.fakes.slack.driver import ChannelDriver, NotSent, Pressed
from tests.fakes.slack.faults import Fault, Trouble, limit, refuse
from tests.fakes.slack.server import Server
from tests.fakes.slack.service import Call, Limits, Service
from tests.fakes.slack.state import Message, Person, World
from tests.fakes.slack.town import TeamDriver, Town

__all__ = [
    "Call",
    "ChannelDriver",
    "Fault",
    "Limits",
    "Message",
    "NotSent",
    "Person",
    "Pressed",
    "TeamDriver",
    "Town",
    "Trouble",
    "limit",
    "refuse",
    "slack_server",
]


@asynccontextmanager
async def slack_server(
    *,
    unlimited: bool = False,
    limits: Limits | None = None,
    world: World | None = None,
    port: int = 0,
    allow_violations: Sequence[str] = (),
) -> AsyncGenerator[Town]:
    """Serve until the end of the block, and hold the app to what Slack lets it do.

    `unlimited`: any number of calls. `allow_violations` are beginnings of those a test provokes.

    Raises:
        AssertionError: at the end, when anything else was violated.
    """
    service = Service(unlimited=unlimited, limits=limits or Limits(), world=world or World())
    server = Server(service)
    await server.up(port=port)
    try:
        yield Town(service=service, server=server)
    finally:
        await service.outbox.stop()
        await server.down()
    beyond = [v for v in service.violations if not v.startswith(tuple(allow_violations))]
    assert not beyond, "\n".join(["what Slack would not stand:", *beyond])
