"""Everything this service raises on purpose.

GatewayError
├── ConfigError
├── HomeError ─ HomeLocked
├── StoreError ─ NotFound · Conflict · StoreBusy* · Fenced · SchemaTooNew · ForeignDatabase · StoreBroken
├── AdapterError ─ AdapterUnauthorized · DeliveryDeferred* · DeliveryUnsure · DeliveryRejected
├── FileError ─ FileTooLarge · FileGone · FileUnavailable* · FileUnreadable · FileUnwritable*
├── ToolHostError ─ ServerParked · ServerUnavailable* · ToolTimeout · NeedsLogin · NeedsScope
├── ModelError ─ ModelRateLimited* · ModelUnavailable* · ModelRejected · ModelUnauthorized · ContextTooLong
└── ControlError ─ GatewayNotRunning · GatewayRefused
(* retryable)

Constructors take data and write the text for logs; `public_message` is what a person may read.
"""

from collections.abc import Mapping
from typing import ClassVar

from gateway.domain.files import in_words


class GatewayError(Exception):
    """Root of the tree. Each class says how the failure may be treated."""

    retryable: ClassVar[bool] = False

    @property
    def public_message(self) -> str:
        """One sentence for a person: no detail that could be a secret."""
        return "Something went wrong on our side; the log has the detail."


class ConfigError(GatewayError):
    """The configuration cannot be used; `path` is a file with line and column, or a key."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem

    @property
    def public_message(self) -> str:
        return str(self)


class HomeError(GatewayError):
    """The home directory cannot be used."""

    def __init__(self, home: str, problem: str) -> None:
        super().__init__(f"home {home}: {problem}")

    @property
    def public_message(self) -> str:
        return str(self)


class HomeLocked(HomeError):
    """Another process owns this home; `pid` is 0 when it did not say."""

    def __init__(self, home: str, pid: int) -> None:
        holder = f"process {pid}" if pid else "another process"
        super().__init__(home, f"already in use by {holder}")
        self.pid = pid


class StoreError(GatewayError):
    """The store could not do what was asked."""


class NotFound(StoreError):
    """A row that must exist does not."""

    def __init__(self, what: str, key: object) -> None:
        super().__init__(f"no {what} {key}")


class Conflict(StoreError):
    """A row with that unique value exists, or the row no longer is as expected."""

    def __init__(self, what: str) -> None:
        super().__init__(f"conflict: {what}")


class StoreBusy(StoreError):
    """Locked, full or away: nothing was written, nothing may be acknowledged."""

    retryable = True

    def __init__(self, cause: str) -> None:
        super().__init__(f"the store cannot write now: {cause}")

    @property
    def public_message(self) -> str:
        return "The store cannot write at the moment; nothing was lost, please try again."


class Fenced(StoreError):
    """Another worker took the conversation over; stop without a word."""

    def __init__(self, turn: int, fence: int) -> None:
        super().__init__(f"turn {turn} is no longer held under fence {fence}")


class SchemaTooNew(StoreError):
    """The database was written by a newer version of this program."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema {found}, this program knows {known}: "
            "use the newer hermes, or restore a backup of the older one"
        )

    @property
    def public_message(self) -> str:
        return str(self)


class ForeignDatabase(StoreError):
    """A file in the place of our database that is not ours."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is not a Hermes Gateway database; it was left untouched")

    @property
    def public_message(self) -> str:
        return str(self)


class StoreBroken(StoreError):
    """The database is read-only, damaged or unreadable; it is never replaced by an empty one."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} cannot be used ({problem}); it was left as it is. "
            "Check its permissions and disk, or put a verified backup in its place: "
            "hermes store restore-check BACKUP"
        )

    @property
    def public_message(self) -> str:
        return str(self)


class AdapterError(GatewayError):
    """A chat platform refused or failed a request."""


class AdapterUnauthorized(AdapterError):
    """The platform does not know our token any more."""

    def __init__(self, platform: str, reason: str) -> None:
        super().__init__(f"{platform} refused our credentials: {reason}")


class DeliveryDeferred(AdapterError):
    """The platform asked us to come back later; `retry_after` in seconds."""

    retryable = True

    def __init__(self, platform: str, retry_after: float) -> None:
        super().__init__(f"{platform} asked to retry in {retry_after:.0f}s")
        self.retry_after = retry_after


class DeliveryUnsure(AdapterError):
    """The call ended without an answer; the message may have arrived."""

    def __init__(self, platform: str, cause: str) -> None:
        super().__init__(f"{platform} gave no answer: {cause}")


class DeliveryRejected(AdapterError):
    """The platform will never take this message."""

    def __init__(self, platform: str, reason: str) -> None:
        super().__init__(f"{platform} refused the message: {reason}")


class FileError(GatewayError):
    """A file of a message could not be had, kept or read; the text is for the person as well."""

    @property
    def public_message(self) -> str:
        return str(self)


class FileTooLarge(FileError):
    """It is larger than `limit` bytes; `size` is None when that is all that is known."""

    def __init__(self, limit: int, size: int | None = None) -> None:
        has = "" if size is None else f"it has {in_words(size)}, and "
        super().__init__(f"{has}{in_words(limit)} is the limit")
        self.limit = limit


class FileGone(FileError):
    """The platform has it no longer."""

    def __init__(self, platform: str) -> None:
        super().__init__(f"{platform} has it no longer")


class FileUnavailable(FileError):
    """It could not be had now; `retry_after` in seconds, None when nobody said."""

    retryable = True

    def __init__(self, platform: str, cause: str, *, retry_after: float | None = None) -> None:
        super().__init__(f"{platform} did not hand it over ({cause})")
        self.retry_after = retry_after


class FileUnreadable(FileError):
    """A file of this machine that is not sent or cannot be read."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")


class FileUnwritable(FileError):
    """The media folder cannot take a file now."""

    retryable = True

    def __init__(self, cause: str) -> None:
        super().__init__(f"it could not be kept here ({cause})")


class ToolHostError(GatewayError):
    """An MCP server could not take or finish a call."""

    def __init__(self, server: str, problem: str) -> None:
        super().__init__(f"server {server}: {problem}")
        self.server = server
        self.problem = problem

    @property
    def public_message(self) -> str:
        return str(self)


class ServerParked(ToolHostError):
    """The server waits for a probe or a person; `retry_in` seconds, None when not scheduled."""

    def __init__(self, server: str, reason: str, retry_in: float | None) -> None:
        again = f", next try in {retry_in:.0f} s" if retry_in is not None else ""
        super().__init__(server, f"parked: {reason}{again}")
        self.reason = reason


class ServerUnavailable(ToolHostError):
    """It could not be reached, or its connection broke; `sent` when the call may have run."""

    retryable = True

    def __init__(self, server: str, problem: str, *, sent: bool) -> None:
        super().__init__(server, problem)
        self.sent = sent


class ToolTimeout(ToolHostError):
    """No answer within the server's `timeout`, in seconds."""

    def __init__(self, server: str, tool: str, seconds: float) -> None:
        super().__init__(server, f"{tool} gave no answer within {seconds:g} s")


class NeedsLogin(ToolHostError):
    """Nobody is signed in to the server, or no longer: only a person can change that."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(server, f"needs login ({why}): run `hermes mcp login {server}`")
        self.why = why


class NeedsScope(ToolHostError):
    """The sign-in does not reach so far; `scope` is what the server asked for."""

    def __init__(self, server: str, scope: str) -> None:
        wanted = f" ({scope})" if scope else ""
        super().__init__(
            server,
            f"this needs a sign-in that allows more{wanted}: run `hermes mcp login {server}`",
        )
        self.scope = scope


class ModelError(GatewayError):
    """A model could not answer; `model` is `provider:name`."""

    def __init__(self, model: str, problem: str) -> None:
        super().__init__(f"model {model}: {problem}")
        self.model = model
        self.problem = problem

    @property
    def public_message(self) -> str:
        return f"The model {self.model} could not answer ({self.problem})."


class ModelRateLimited(ModelError):
    """The provider asked us to slow down; `retry_after` in seconds, None when it did not say."""

    retryable = True

    def __init__(self, model: str, retry_after: float | None) -> None:
        wait = "" if retry_after is None else f", retry in {retry_after:g} s"
        super().__init__(model, f"rate limited{wait}")
        self.retry_after = retry_after


class ModelUnavailable(ModelError):
    """Overloaded, unreachable, or the answer broke off."""

    retryable = True


class ModelUnauthorized(ModelError):
    """The provider refused the key."""


class ModelRejected(ModelError):
    """The provider will never take this request."""


class ContextTooLong(ModelError):
    """The request is larger than the model's context."""

    def __init__(self, model: str) -> None:
        super().__init__(model, "the conversation is longer than its context")


class ControlError(GatewayError):
    """The running gateway could not be asked, or said no."""


class GatewayNotRunning(ControlError):
    """No gateway of this home is up."""

    def __init__(self, home: str) -> None:
        super().__init__(f"no gateway is running for {home}")

    @property
    def public_message(self) -> str:
        return "The gateway is not running."


class GatewayRefused(ControlError):
    """The gateway answered with an error of the control API; `details` is what it said besides."""

    def __init__(
        self, code: str, text: str, *, details: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(text)
        self.code = code
        self.details = dict(details or {})

    @property
    def public_message(self) -> str:
        return str(self)
