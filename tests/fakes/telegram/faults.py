"""What can go wrong between a bot and the service, as scripted by a test."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

ANY_METHOD: Final = "*"


class Trouble(Enum):
    """Each says whether the call still had its effect."""

    REFUSE = "refuse"
    """An error answer; no effect."""
    PAGE = "page"
    """An error page in HTML, as the proxy before the service sends; no effect."""
    HANG_BEFORE = "hang_before"
    """No answer ever; no effect."""
    HANG_AFTER = "hang_after"
    """The effect, then no answer ever."""
    CUT_BEFORE = "cut_before"
    """The connection is reset; no effect."""
    CUT_AFTER = "cut_after"
    """The effect, then the connection is reset."""
    CUT_ANSWER = "cut_answer"
    """The effect, then half an answer."""
    SLOW = "slow"
    """The effect and the answer, `seconds` later."""


@dataclass(slots=True, kw_only=True)
class Fault:
    """Meets the next `times` calls of a method, after `skip` of them went well."""

    trouble: Trouble
    method: str = ANY_METHOD
    chat: int | None = None
    times: int = 1
    skip: int = 0
    status: int = 500
    description: str = "Internal Server Error"
    retry_after: int | None = None
    seconds: float = 0
    met: int = 0

    def takes(self, method: str, chat: int | None) -> bool:
        """Whether it meets this call; counts those it is for."""
        if self.times <= self.met or self.method.lower() not in (ANY_METHOD, method.lower()):
            return False
        if self.chat is not None and self.chat != chat:
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.met += 1
        return True


@dataclass(slots=True)
class Faults:
    """The faults that lie ahead, first come first met."""

    ahead: list[Fault] = field(default_factory=list[Fault])

    def next(self, method: str, chat: int | None) -> Fault | None:
        return next((fault for fault in self.ahead if fault.takes(method, chat)), None)


def refuse(method: str, status: int, description: str, *, times: int = 1) -> Fault:
    return Fault(
        trouble=Trouble.REFUSE, method=method, status=status, description=description, times=times
    )


def flood(
    method: str, seconds: int, *, times: int = 1, chat: int | None = None, skip: int = 0
) -> Fault:
    return Fault(
        trouble=Trouble.REFUSE,
        method=method,
        status=429,
        description=f"Too Many Requests: retry after {seconds}",
        retry_after=seconds,
        times=times,
        chat=chat,
        skip=skip,
    )


def conflict(*, times: int = 1) -> Fault:
    return refuse(
        "getUpdates",
        409,
        "Conflict: terminated by other getUpdates request; "
        "make sure that only one bot instance is running",
        times=times,
    )
