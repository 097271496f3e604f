"""`gateway.ports.Store` on the writer of one SQLite file: each call is one operation handed over."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from gateway.domain.delivery import Delivery, Outcome
from gateway.domain.form import FormState
from gateway.domain.ids import Account, InboundId, RuleId
from gateway.domain.operations.deliveries import ClaimDelivery, Enqueue, Enqueued, ParkChat
from gateway.domain.operations.files import SettleFile
from gateway.domain.operations.inbound import Accept, Accepted, Duplicate, MigrateChat
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
from store.operations import asking, deliveries, journal, places, settling, turns, upkeep
from store.operations import files as attached
from store.operations import inbound as arrivals
from store.operations import pairing as pairings
from store.writer import Writer


class SqliteStore:
    """Everything that writes. Each method returns once its result is durable."""

    def __init__(self, writer: Writer) -> None:
        self._do = writer.do

    # --- what arrives ------------------------------------------------------------

    async def accept(self, accept: Accept) -> Accepted | Duplicate:
        return await self._do(partial(arrivals.accept, accept=accept))

    async def finish(self, inbound: InboundId) -> None:
        await self._do(partial(arrivals.finish, inbound=inbound))

    async def migrate_chat(self, migrate: MigrateChat) -> int:
        return await self._do(partial(places.migrate_chat, migrate=migrate))

    # --- turns ---------------------------------------------------------------------

    async def claim_turn(self, *, worker: str, held: Sequence[Account] = ()) -> Claim | None:
        return await self._do(partial(turns.claim_turn, worker=worker, held=held))

    async def record_steps(self, steps: RecordSteps) -> Recorded:
        return await self._do(partial(journal.record_steps, steps=steps))

    async def commit_turn(self, commit: CommitTurn) -> Committed:
        return await self._do(partial(turns.commit_turn, commit=commit))

    async def release(self, release: Release) -> None:
        await self._do(partial(turns.release, release=release))

    async def compact(self, compact: Compact) -> None:
        await self._do(partial(turns.compact, compact=compact))

    # --- questions --------------------------------------------------------------------

    async def ask(self, ask: Ask) -> Question:
        return await self._do(partial(asking.ask, ask=ask))

    async def answer_field(self, answer: AnswerField) -> FormState | Stale:
        return await self._do(partial(asking.answer_field, answer=answer))

    async def decide(self, decide: Decide) -> Ruling:
        return await self._do(partial(settling.decide, decide=decide))

    async def refuse(self, attempt: RefuseAttempt) -> None:
        await self._do(partial(settling.refuse, attempt=attempt))

    async def withdraw(self, withdraw: Withdraw) -> Sequence[Settled]:
        return await self._do(partial(settling.withdraw, withdraw=withdraw))

    async def expire_due(self, expire: ExpireDue) -> Sequence[Settled]:
        return await self._do(partial(settling.expire_due, expire=expire))

    # --- deliveries ---------------------------------------------------------------------

    async def enqueue(self, enqueue: Enqueue) -> Enqueued:
        return await self._do(partial(deliveries.enqueue, enqueue=enqueue))

    async def claim_delivery(self, claim: ClaimDelivery) -> Delivery | None:
        return await self._do(partial(deliveries.claim_delivery, claim=claim))

    async def mark_delivery(self, outcome: Outcome) -> None:
        await self._do(partial(deliveries.mark_delivery, outcome=outcome))

    async def park_chat(self, park: ParkChat) -> None:
        await self._do(partial(deliveries.park_chat, park=park))

    async def settle_file(self, settle: SettleFile) -> bool:
        return await self._do(partial(attached.settle_file, settle=settle))

    # --- pairing -----------------------------------------------------------------------------

    async def offer_pairing(self, offer: OfferPairing) -> bool:
        return await self._do(partial(pairings.offer_pairing, offer=offer))

    async def approve_pairing(self, approve: ApprovePairing) -> Pairing | None:
        return await self._do(partial(pairings.approve_pairing, approve=approve))

    async def revoke_pairing(self, revoke: RevokePairing) -> Pairing | None:
        return await self._do(partial(pairings.revoke_pairing, revoke=revoke))

    async def miss_pairing(self, miss: MissPairing) -> None:
        await self._do(partial(pairings.miss_pairing, miss=miss))

    # --- upkeep ----------------------------------------------------------------------------

    async def recover(self, *, worker: str) -> Recovered:
        return await self._do(partial(upkeep.recover, worker=worker))

    async def prune(self, prune: Prune) -> Pruned:
        return await self._do(partial(upkeep.prune, prune=prune))

    async def set_home(self, home: SetHome) -> None:
        await self._do(partial(upkeep.set_home, home=home))

    async def set_title(self, title: SetTitle) -> None:
        await self._do(partial(upkeep.set_title, title=title))

    async def set_model(self, model: SetModel) -> None:
        await self._do(partial(upkeep.set_model, model=model))

    async def revoke_rule(self, revoke: RevokeRule) -> StandingRule | None:
        return await self._do(partial(upkeep.revoke_rule, revoke=revoke))

    async def use_rule(self, rule: RuleId) -> bool:
        return await self._do(partial(upkeep.use_rule, rule=rule))

    async def put_server(self, server: PutServer) -> None:
        await self._do(partial(upkeep.put_server, server=server))

    async def pin_tool(self, pin: PinTool) -> None:
        await self._do(partial(upkeep.pin_tool, pin=pin))

    async def add_audit(self, line: AddAudit) -> None:
        await self._do(partial(upkeep.add_audit, line=line))

    async def put_timer(self, timer: PutTimer) -> None:
        await self._do(partial(upkeep.put_timer, timer=timer))

    async def claim_timer(self, *, worker: str, lease_until: datetime) -> DueTimer | None:
        return await self._do(partial(upkeep.claim_timer, worker=worker, lease_until=lease_until))

    async def done_timer(self, name: str) -> None:
        await self._do(partial(upkeep.done_timer, name=name))
