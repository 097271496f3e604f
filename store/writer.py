"""The writer: one thread that owns the one writing connection and commits in groups.

An operation is a function of `Work`. Its future resolves only after the COMMIT that holds it, and
it is carried out even when its caller was cancelled. A lock or a full disk is waited out here.
"""

import asyncio
import logging
import queue
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from gateway.domain.errors import Conflict, StoreBroken, StoreBusy, StoreError
from gateway.ports import Clock, StoreHealth
from store.checkpoints import Checkpoints
from store.codec import ms
from store.engine import open_connection
from store.faults import Trouble, error_at_open, trouble_of
from store.inode_guard import InodeGuard
from store.migrations import bring_up
from store.work import Unguarded, Work

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_GROUP: Final = 256
"""Operations of one commit at most, so that no caller waits for too many others."""

_FIRST_DELAY: Final = 0.02
_LONGEST_DELAY: Final = 1.0
_PROBE: Final = "UPDATE meta SET value = value WHERE key = 'application'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The writer's own times, in seconds of the real clock."""

    busy_limit: float = 60.0
    """How long an operation waits for a lock or for disk space before its caller is told."""
    closing_limit: float = 5.0
    """The same once the store is being closed."""
    idle: float = 1.0
    """After this long without work the log is folded into the file."""
    guard: float = 2.0
    """How often the files are compared with what is open."""


DEFAULT_PACE: Final = Pace()


class _Job(NamedTuple):
    run: Callable[[Work], Any]
    future: asyncio.Future[Any]
    since: float


class _Outcome(NamedTuple):
    future: asyncio.Future[Any]
    value: Any = None
    error: Exception | None = None


class Writer:
    """Hands operations to the writing thread of one database; used from one event loop.

    `on_commit` is called there after each group commit, told whether an event was written.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        pace: Pace = DEFAULT_PACE,
        on_commit: Callable[[bool], None],
    ) -> None:
        self._path = path
        self._clock = clock
        self._pace = pace
        self._on_commit = on_commit
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._main, name="store-writer", daemon=True)
        self._health = StoreHealth()

    @property
    def health(self) -> StoreHealth:
        """How writing goes at the moment."""
        return self._health

    async def start(self) -> None:
        """Open the database in the writing thread.

        Raises:
            StoreError: Why it cannot be used.
        """
        self._thread.start()
        await self._opened

    async def do(self, run: Callable[[Work], T]) -> T:
        """Carry out one operation in a transaction and return its result once it is durable.

        Raises:
            StoreBusy: Nothing was written.
            StoreBroken: Nothing can be written any more.
        """
        if self._closing.is_set():
            raise self._refusal()
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(run, future, time.monotonic()))
        return await future

    async def close(self) -> None:
        """Carry out what was handed over, fold the log into the file, and end the thread."""
        if not self._closing.is_set():
            self._closing.set()
            self._jobs.put(None)
        await asyncio.shield(self._ended)
        self._thread.join()

    # --- the thread ------------------------------------------------------------------

    def _main(self) -> None:
        try:
            self._work()
        except Exception as error:
            # The thread's own boundary: whoever waits is told, and nothing is accepted any more.
            logger.exception("the writer of %s ended", self._path)
            self._break(f"internal error: {error}")
        finally:
            self._closing.set()
            self._post(self._settle_ended)

    def _work(self) -> None:
        try:
            connection = self._open()
        except StoreError as error:
            self._post(self._settle_opened, error)
            return
        try:
            work = Work(connection)
            checkpoints = Checkpoints(connection)
            self._post(self._settle_opened, None)
            self._serve(work, checkpoints)
            if not self._health.broken:
                with suppress(sqlite3.Error):
                    checkpoints.fold()
        finally:
            connection.close()

    def _open(self) -> sqlite3.Connection:
        end = time.monotonic() + self._pace.busy_limit
        delay = _FIRST_DELAY
        while True:
            try:
                connection = _open_current(self._path)
            except sqlite3.Error as error:
                problem = error_at_open(str(self._path), error)
                if not isinstance(problem, StoreBusy) or time.monotonic() > end:
                    raise problem from error
                self._busy(error)
                delay = self._pause(delay)
            else:
                self._healthy()
                return connection

    def _serve(self, work: Work, checkpoints: Checkpoints) -> None:
        guard = InodeGuard(self._path)
        guard_at = time.monotonic() + self._pace.guard
        while True:
            jobs, ending = self._next(checkpoints)
            if jobs:
                self._commit(work, jobs)
                self._fold(checkpoints, idle=False)
            elif not ending:
                self._rest(work, checkpoints)
            if time.monotonic() >= guard_at:
                guard_at = time.monotonic() + self._pace.guard
                self._check_files(guard)
            if ending or self._health.broken:
                return

    def _next(self, checkpoints: Checkpoints) -> tuple[list[_Job], bool]:
        wait = self._pace.idle if checkpoints.pending else self._pace.guard
        jobs: list[_Job] = []
        try:
            job = self._jobs.get(timeout=min(wait, self._pace.guard))
            while job is not None:
                jobs.append(job)
                if len(jobs) >= MAX_GROUP:
                    return jobs, False
                job = self._jobs.get_nowait()
        except queue.Empty:
            return jobs, False
        return jobs, True

    def _commit(self, work: Work, jobs: list[_Job]) -> None:
        delay = _FIRST_DELAY
        while jobs:
            try:
                outcomes = self._attempt(work, jobs)
            except sqlite3.Error as error:
                with suppress(sqlite3.Error):
                    work.rollback()
                if trouble_of(error) is Trouble.BROKEN:
                    self._break(str(error))
                    self._fail(jobs, StoreBroken(str(self._path), str(error)))
                    return
                self._busy(error)
                jobs = self._still_waiting(jobs, error)
                if jobs:
                    delay = self._pause(delay)
            except BaseException:
                # A fault of this program, which ends the thread: these callers must not wait on.
                self._fail(jobs, StoreBusy("internal error"))
                raise
            else:
                self._healthy()
                self._post(self._settle_committed, outcomes, work.wrote_event)
                return

    def _attempt(self, work: Work, jobs: list[_Job]) -> list[_Outcome]:
        try:
            return self._run(work, jobs, guarded=False)
        except Unguarded:
            work.rollback()
            return self._run(work, jobs, guarded=True)

    def _run(self, work: Work, jobs: list[_Job], *, guarded: bool) -> list[_Outcome]:
        work.begin(ms(self._clock.now()), guarded=guarded)
        outcomes = [self._one(work, job) for job in jobs]
        work.commit()
        return outcomes

    def _one(self, work: Work, job: _Job) -> _Outcome:
        work.mark()
        try:
            value = job.run(work)
        except sqlite3.Error as error:
            if trouble_of(error) is not Trouble.VALUE:
                raise
            work.drop()
            return _Outcome(job.future, error=_value_error(error))
        except Unguarded:
            raise
        # An operation's failure is its caller's, whatever it is; the others of the group go on.
        except Exception as error:  # noqa: BLE001
            work.drop()
            return _Outcome(job.future, error=error)
        work.keep()
        return _Outcome(job.future, value=value)

    def _rest(self, work: Work, checkpoints: Checkpoints) -> None:
        if self._health.busy_since is not None:
            self._probe(work)
        self._fold(checkpoints, idle=True)

    def _probe(self, work: Work) -> None:
        """Find out whether writing works again although nobody asks for it."""
        try:
            work.begin(ms(self._clock.now()))
            work.run(_PROBE)
            work.commit()
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                work.rollback()
        else:
            self._healthy()

    def _fold(self, checkpoints: Checkpoints, *, idle: bool) -> None:
        try:
            if idle:
                checkpoints.fold()
            else:
                checkpoints.step()
        except sqlite3.Error as error:
            # The log only grows on; the next one tries again.
            logger.debug("checkpoint put off: %s", error)

    def _check_files(self, guard: InodeGuard) -> None:
        problem = guard.problem()
        if problem:
            self._break(problem)

    # --- trouble -----------------------------------------------------------------------

    def _still_waiting(self, jobs: list[_Job], error: sqlite3.Error) -> list[_Job]:
        limit = self._pace.closing_limit if self._closing.is_set() else self._pace.busy_limit
        started = time.monotonic() - limit
        late = [job for job in jobs if job.since < started]
        if late:
            self._fail(late, StoreBusy(str(error)))
        return [job for job in jobs if job.since >= started]

    def _pause(self, delay: float) -> float:
        # Others who wait for the same lock must not try again at the same moment; nothing secret.
        jitter = random.uniform(0.5, 1.0)  # noqa: S311
        time.sleep(delay * jitter)
        return min(delay * 2, _LONGEST_DELAY)

    def _busy(self, error: sqlite3.Error) -> None:
        if self._health.busy_since is None and not self._health.broken:
            self._health = StoreHealth(busy_since=self._clock.now(), reason=str(error))
            logger.warning("the store cannot write and keeps trying: %s", error)

    def _healthy(self) -> None:
        if self._health.busy_since is not None:
            self._health = StoreHealth()
            logger.info("the store writes again")

    def _break(self, problem: str) -> None:
        if not self._health.broken:
            self._health = StoreHealth(broken=problem)
            self._closing.set()
            logger.error("the store stops: %s", problem)

    def _refusal(self) -> StoreError:
        if self._health.broken:
            return StoreBroken(str(self._path), self._health.broken)
        return StoreBusy("it is closed")

    def _fail(self, jobs: list[_Job], error: StoreError) -> None:
        self._post(self._settle, [_Outcome(job.future, error=error) for job in jobs])

    # --- back in the event loop ------------------------------------------------------------

    def _post(self, call: Callable[..., None], *values: Any) -> None:
        # The loop is gone only when the program ends without closing: then nobody waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *values)

    def _settle_opened(self, error: StoreError | None) -> None:
        if self._opened.done():
            return
        if error is None:
            self._opened.set_result(None)
        else:
            self._opened.set_exception(error)

    def _settle_ended(self) -> None:
        if not self._opened.done():
            self._opened.set_exception(StoreBroken(str(self._path), self._health.broken))
        # Here, where jobs come from, so that none slips in between the last look and the end.
        self._settle([_Outcome(job.future, error=self._refusal()) for job in self._left()])
        if not self._ended.done():
            self._ended.set_result(None)

    def _left(self) -> list[_Job]:
        jobs: list[_Job] = []
        with suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    jobs.append(job)
        return jobs

    def _settle(self, outcomes: list[_Outcome]) -> None:
        for outcome in outcomes:
            if outcome.future.done():
                continue
            if outcome.error is None:
                outcome.future.set_result(outcome.value)
            else:
                outcome.future.set_exception(outcome.error)

    def _settle_committed(self, outcomes: list[_Outcome], wrote_event: bool) -> None:
        self._settle(outcomes)
        self._on_commit(wrote_event)


def _open_current(path: Path) -> sqlite3.Connection:
    """Open the database and bring its schema up to the program's."""
    connection = open_connection(path)
    try:
        bring_up(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _value_error(error: sqlite3.Error) -> StoreError:
    """Translate a refusal of one operation's values."""
    if isinstance(error, sqlite3.IntegrityError):
        return Conflict(str(error))
    return StoreError(f"the values were refused: {error}")
