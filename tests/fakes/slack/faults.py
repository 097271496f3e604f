"""What can go wrong between the app and the service, as scripted by a test."""

from dataclasses import dataclass, field

from tests.fakes.telegram.faults import ANY_METHOD, Trouble

__all__ = ["ANY_METHOD", "Fault", "Faults", "Trouble", "limit", "refuse"]


@dataclass(slots=True, kw_only=True)
class Fault:
    """Meets the next `times` calls of a method, after `skip` of them went well."""

    trouble: Trouble
    method: str = ANY_METHOD
    channel: str = ""
    times: int = 1
    skip: int = 0
    error: str = "internal_error"
    more: dict[str, str] = field(default_factory=dict[str, str])
    retry_after: int | None = None
    seconds: float = 0
    met: int = 0

    def takes(self, method: str, channel: str) -> bool:
        """Whether it meets this call; counts those it is for."""
        if self.times <= self.met or self.method not in (ANY_METHOD, method):
            return False
        if self.channel and self.channel != channel:
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

    def next(self, method: str, channel: str) -> Fault | None:
        return next((fault for fault in self.ahead if fault.takes(method, channel)), None)


def refuse(method: str, error: str, *, times: int = 1, channel: str = "", **more: str) -> Fault:
    return Fault(
        trouble=Trouble.REFUSE, method=method, error=error, times=times, channel=channel, more=more
    )


def limit(method: str, seconds: int, *, times: int = 1, channel: str = "", skip: int = 0) -> Fault:
    return Fault(
        trouble=Trouble.REFUSE,
        method=method,
        retry_after=seconds,
        times=times,
        channel=channel,
        skip=skip,
    )
