"""What writes to the store: one operation, one value, one transaction."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from gateway.domain.delivery import Delivery, Outcome
from gateway.domain.form import FormState
from gateway.domain.ids import Account, InboundId, RuleId
from gateway.domain.operations.deliveries import ClaimDelivery, Enqueue, Enqueued, ParkChat
from gateway.domain.operations.inbound import (
    Accept,
    Accepted,
    Duplicate,
    MigrateChat,
)
from gateway.domain.operations.pairing import (
    ApprovePairing,
    MissPairing,
    OfferPairing,
    Pairing,
    RevokePairing,
)
from gateway.domain.operations.questions import (
    AnswerField,
    Ask,
    Decide,
    ExpireDue,
    RefuseAttempt,
    Ruling,
    Settled,
    Stale,
    Withdraw,
)
from gateway.domain.operations.turns import (
    Claim,
    Committed,
    CommitTurn,
    Compact,
    Recorded,
    RecordSteps,
    Release,
)
from gateway.domain.operations.upkeep import (
    AddAudit,
    DueTimer,
    PinTool,
    Prune,
    Pruned,
    PutServer,
    PutTimer,
    Recovered,
    RevokeRule,
    SetHome,
    SetModel,
    SetTitle,
    StandingRule,
)
from gateway.domain.question import Question
from gateway.ports.files import FileStore


class InboundStore(Protocol):
    async def accept(self, accept: Accept) -> Accepted | Duplicate:
        """Store an event once, with its message and its place in the stream."""
        ...

    async def finish(self, inbound: InboundId) -> None:
        """Mark a control event as worked off."""
        ...

    async def migrate_chat(self, migrate: MigrateChat) -> int:
        """Move a chat's conversations to its new id; return how many."""
        ...


class TurnStore(Protocol):
    async def claim_turn(self, *, worker: str, held: Sequence[Account] = ()) -> Claim | None:
        """Take the conversation that waits longest, with its open turn or its next input.

        Those of a `held` account (platform, account) are left waiting.
        """
        ...

    async def record_steps(self, steps: RecordSteps) -> Recorded:
        """Write what was answered, planned, is about to be called, and came back.

        Raises:
            Fenced: Another worker holds the conversation.
            Conflict: A gated step's approval is used up or covers something else.
        """
        ...

    async def commit_turn(self, commit: CommitTurn) -> Committed:
        """End the turn and release the claim: reply, deliveries and event together, or nothing.

        What was shown of the reply while it was made is taken away after the reply is sent.

        Raises:
            Fenced: Another worker holds the conversation.
        """
        ...

    async def release(self, release: Release) -> None: ...

    async def compact(self, compact: Compact) -> None: ...


class QuestionStore(Protocol):
    async def ask(self, ask: Ask) -> Question:
        """Store a question with its buttons, its card and its event.

        Raises:
            Conflict: Its id, or the short id while pending, is taken: repeat with a new one.
        """
        ...

    async def answer_field(self, answer: AnswerField) -> FormState | Stale: ...

    async def decide(self, decide: Decide) -> Ruling:
        """Settle a question if it is still open; the first one wins."""
        ...

    async def refuse(self, attempt: RefuseAttempt) -> None: ...

    async def withdraw(self, withdraw: Withdraw) -> Sequence[Settled]: ...

    async def expire_due(self, expire: ExpireDue) -> Sequence[Settled]: ...


class DeliveryStore(Protocol):
    async def enqueue(self, enqueue: Enqueue) -> Enqueued: ...

    async def claim_delivery(self, claim: ClaimDelivery) -> Delivery | None:
        """Take the next one that may be sent; its row says `sending` before the call is made."""
        ...

    async def mark_delivery(self, outcome: Outcome) -> None: ...

    async def park_chat(self, park: ParkChat) -> None:
        """Send nothing to a chat for a while; a longer pause it has already stays."""
        ...


class PairingStore(Protocol):
    async def offer_pairing(self, offer: OfferPairing) -> bool:
        """Keep a code and send it, unless its holder has or had one; say whether that was done."""
        ...

    async def approve_pairing(self, approve: ApprovePairing) -> Pairing | None:
        """Let the holder of a code in; None when the code is used, taken back or run out."""
        ...

    async def revoke_pairing(self, revoke: RevokePairing) -> Pairing | None:
        """Let somebody in no more; None when they were not in and have no code."""
        ...

    async def miss_pairing(self, miss: MissPairing) -> None:
        """Count a wrong code; after some, every code that waits is worth nothing."""
        ...


class UpkeepStore(Protocol):
    async def recover(self, *, worker: str) -> Recovered:
        """Free what an earlier process held; at boot, before adapters start."""
        ...

    async def prune(self, prune: Prune) -> Pruned: ...

    async def set_home(self, home: SetHome) -> None: ...

    async def set_title(self, title: SetTitle) -> None: ...

    async def set_model(self, model: SetModel) -> None: ...

    async def revoke_rule(self, revoke: RevokeRule) -> StandingRule | None:
        """End a rule; None when it is unknown or was revoked before."""
        ...

    async def use_rule(self, rule: RuleId) -> bool:
        """Count a use of a standing rule; False when it is not in force any more."""
        ...

    async def put_server(self, server: PutServer) -> None: ...

    async def pin_tool(self, pin: PinTool) -> None: ...

    async def add_audit(self, line: AddAudit) -> None: ...

    async def put_timer(self, timer: PutTimer) -> None: ...

    async def claim_timer(self, *, worker: str, lease_until: datetime) -> DueTimer | None: ...

    async def done_timer(self, name: str) -> None: ...


class Store(
    InboundStore,
    TurnStore,
    QuestionStore,
    DeliveryStore,
    FileStore,
    PairingStore,
    UpkeepStore,
    Protocol,
):
    """Everything that writes. A component asks for the part it needs."""
