"""Who calls the API: the user of the socket, as an actor by the way they came."""

from starlette.requests import Request

from gateway.control.desk import Desk
from gateway.control.operators import PLATFORM_OF
from gateway.control.peer import Peer, descends
from gateway.control.problems import Problem
from gateway.domain.ids import Actor
from gateway.domain.question import Surface


def caller(desk: Desk, *, surface: Surface = Surface.CLI) -> Actor:
    """Return who calls: the socket lets nobody in but the user it belongs to."""
    about = desk.about
    return Actor(platform=PLATFORM_OF[surface], id=str(about.uid), name=about.user)


def surface_of(name: str) -> Surface:
    """Return the surface of that name.

    Raises:
        Problem: The API has no such surface.
    """
    found = next((item for item in PLATFORM_OF if item.value == name), None)
    if found is None:
        raise Problem("invalid_arguments", f"there is no surface {name}")
    return found


def check_no_agent(request: Request, desk: Desk) -> None:
    """Refuse to let an agent answer its own question: a tool of ours must not decide.

    Raises:
        Problem: The caller was started by this gateway.
    """
    peer = getattr(request.state, "peer", None)
    if isinstance(peer, Peer) and descends(peer.pid, ancestor=desk.about.pid):
        sentence = "a program that this gateway started may not decide for a person"
        raise Problem("not_allowed", sentence)
