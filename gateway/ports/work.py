"""What the core needs of models and tools, and what a tool call may ask of people."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.domain.canonical import CanonicalJson
from gateway.domain.form import Form, FormAnswer
from gateway.domain.ids import (
    QuestionId,
)
from gateway.domain.model import ModelReply, ModelRequest
from gateway.domain.question import Decision
from gateway.domain.tools import (
    Reloaded,
    ServerStatus,
    ToolCall,
    ToolHit,
    ToolResult,
    ToolSpec,
)


class ModelProvider(Protocol):
    """One configured model, its fallbacks included; guided mode is one too."""

    @property
    def name(self) -> str:
        """`provider:name`, or `guided`."""
        ...

    @property
    def context_window(self) -> int | None:
        """Tokens, None when unknown."""
        ...

    @property
    def asks_person(self) -> bool:
        """True for guided mode: it works with the functions that ask a person."""
        ...

    async def complete(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the reply to one request; `on_text` gets the text as it is generated.

        Raises:
            ModelError: One of its classes, with how it may be treated.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRequest:
    """A server's question: its form, or why it cannot be asked (`problem`, for the person).

    `timeout` is how many seconds the person has, None as for an approval. `url` is a link that they
    are asked to open, "" for a form.
    """

    server: str
    server_sha: str
    tool: str
    form: Form
    problem: str = ""
    timeout: float | None = None
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingRequest:
    """A server wants an answer of our model while `tool` runs; `excerpt` is what it wrote."""

    server: str
    server_sha: str
    tool: str
    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """May the call run? `question` is the approval it will use up, None when a rule or nobody asked."""

    allowed: bool
    reason: str = ""
    question: QuestionId | None = None
    decision: Decision | None = None


class Approver(Protocol):
    """What one tool call may ask of the conversation it belongs to; made anew for each call."""

    async def approve(self, spec: ToolSpec) -> Approval:
        """Ask whether `spec` may run with the call's arguments; an expiry is an answer too."""
        ...

    async def started(self, question: QuestionId | None) -> CanonicalJson:
        """Write down that the call goes out now; return the arguments that must run.

        Raises:
            Conflict: The approval was used up, or what it covers has changed: nothing may run.
            Fenced: The conversation is no longer ours: nothing may run.
        """
        ...

    async def elicit(self, request: FormRequest) -> FormAnswer:
        """Put a server's form to the person; cancelled by the caller, the card is withdrawn."""
        ...

    async def sample(self, request: SamplingRequest) -> Approval:
        """Ask whether a server may use our model; cancelled by the caller, the card is withdrawn."""
        ...

    async def tell(self, text: str) -> None:
        """Say something about the call in its conversation; the same text is said there once."""
        ...


class ToolHost(Protocol):
    """All MCP servers behind one dispatch function."""

    def tools(self) -> Sequence[ToolSpec]:
        """Every registered tool, by alias."""
        ...

    def find(self, name: str) -> ToolSpec | None:
        """Find by alias, by the older single-underscore form, or by an unambiguous tool name."""
        ...

    def search(self, query: str, *, limit: int) -> Sequence[ToolHit]:
        """Rank the registered tools for a query, best first."""
        ...

    def servers(self) -> Sequence[ServerStatus]: ...

    async def wait_ready(self, seconds: float, *, servers: Collection[str] | None = None) -> None:
        """Return when these servers, or all, are listed or parked, at the latest after `seconds`."""
        ...

    async def call(self, call: ToolCall, approver: Approver) -> ToolResult:
        """Run one call through filter, trust gate, transport and sanitiser.

        Everything that goes wrong is a result; only `Fenced` and cancellation pass through.
        """
        ...

    async def reload(self, server: str | None = None) -> Reloaded:
        """Apply the configuration as it is now; a named server is reconnected in any case."""
        ...
