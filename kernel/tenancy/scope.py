"""Open transactions that see one tenant's rows.

A scope is a short `transaction.atomic` that tells PostgreSQL, for its own duration only, which tenant it serves. The
row-level security policies read that setting, so a query without its filter still sees no foreign row, and a pooled
connection keeps no tenant. Nothing else may make these settings. No model, tool or network call inside a scope.
"""

from __future__ import annotations

import logging
import select
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from django.db import OperationalError, connection, transaction
from psycopg.pq import ConnStatus, PipelineStatus
from psycopg.rows import TupleRow

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.events import Event

_log = logging.getLogger(__name__)

# The scope of what belongs to the whole installation and to no tenant: mail about accounts, files that no row names.
INSTALLATION = UUID(int=0)

Flush = Callable[[list[Any]], object]
Row = TypeVar("Row")
Out = TypeVar("Out")
# The third argument, true, ends the setting with the transaction: a pooled connection must not keep a tenant.
_SET_SCOPE = (
    "SELECT set_config('silas.tenant', %s, true), set_config('silas.platform', %s, true),"
    " set_config('silas.lookup', %s, true)"
)
_SET_OPEN_SCOPE = _SET_SCOPE + ", (SELECT closed FROM tenants_tenant WHERE id = nullif(%s, '')::uuid)"  # noqa: S608 (a text of ours)
_CLOSED = {"closed": ErrorCode.COMPANY_CLOSED, "moved": ErrorCode.COMPANY_MOVED}
# Why a company's scope is refused.
COMPANY_CLOSED = frozenset(_CLOSED.values())
_refuses_closed = False


def refuse_closed_companies(*, on: bool = True) -> None:
    """From now on this process opens no scope of a company that an operator has closed or moved away. Called by the
    processes that serve visitors, members and jobs; commands of the operator still reach a closed company."""
    global _refuses_closed
    _refuses_closed = on


class ScopeError(SilasError):
    """Code touched tenant rows outside a scope, or tried to change tenant inside one. Always a bug of the caller."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.SCOPE_ERROR, message)


@dataclass
class Scope:
    tenant_id: UUID | None = None
    platform: bool = False
    lookup: str = ""
    gathered: dict[Flush, list[object]] = field(default_factory=dict)
    gathered_numbered: dict[Flush, list[object]] = field(default_factory=dict)
    gathered_last: dict[Flush, list[object]] = field(default_factory=dict)
    locked: dict[Any, Any] = field(default_factory=dict)
    # What is counted over the whole transaction, by its kind.
    counted: dict[Any, Any] = field(default_factory=dict)

    def settings(self) -> tuple[str, str, str]:
        return (str(self.tenant_id or ""), "on" if self.platform else "", self.lookup)


_current: ContextVar[Scope | None] = ContextVar("silas_scope", default=None)

# Sent (reason) inside every new platform scope; the audit room records it, because access to all tenants must leave a
# trace.
platform_entered: Event[[str]] = Event("platform_entered")


def leave_scope() -> None:
    """Clear the scope for a step in another thread: the caller's scope is a transaction on another connection."""
    _current.set(None)


@contextmanager
def without_scope() -> Iterator[None]:
    """Clear the scope for the block, which runs on another connection than the caller's transaction."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def building_scope(tenant: Any) -> Iterator[None]:
    """A scope in which querysets are built for any tenant and none may run: `tenant` stands for its id."""
    token = _current.set(Scope(tenant_id=tenant, platform=tenant is None))
    try:
        yield
    finally:
        _current.reset(token)


def current_scope() -> Scope:
    scope = _current.get()
    if scope is None:
        raise ScopeError("tenant rows were touched outside a tenant scope")
    return scope


def current_tenant_id() -> UUID:
    tenant_id = current_scope().tenant_id
    if tenant_id is None:
        raise ScopeError("this needs one tenant, and the scope has none")
    return tenant_id


def before_commit(flush: Flush, item: object, *, last: bool = False, numbered: bool = False) -> None:
    """Pass `item` to `flush` with all others collected in this scope, once, just before COMMIT.

    All flushes of a scope share one pipeline of the driver, so that their statements leave in one round trip. A flush
    may read rows, which waits for them, but not `rowcount`, on which `save()` of an existing row relies.

    `last` is for the audit log alone: it locks the row every writer of a tenant needs, so it comes after everything.
    `numbered` is for events, which lock another such row: they come between the others and the audit log, so that all
    scopes lock in one order. A scope that rolls back drops its items.
    """
    scope = current_scope()
    gathered = scope.gathered_last if last else scope.gathered_numbered if numbered else scope.gathered
    gathered.setdefault(flush, []).append(item)


@contextmanager
def tenant_scope(tenant: Any) -> Iterator[UUID]:
    """Open a transaction that sees `tenant` (a row or its id) only; joins a scope of the same tenant.

    Raises `ScopeError` for None and inside a scope of another tenant; 503 `company_closed` and 410 `company_moved`
    where closed companies are refused. Inside a platform scope it narrows.
    """
    tenant_id = _tenant_id(tenant)
    outer = _current.get()
    if outer is not None and outer.tenant_id == tenant_id:
        yield tenant_id
        return
    if outer is not None and not outer.platform:
        raise ScopeError("a scope of one tenant cannot open another's")
    with _enter_scope(Scope(tenant_id=tenant_id), outer):
        yield tenant_id


@contextmanager
def savepoint() -> Iterator[None]:
    """A savepoint in a scope or a flush: a block that raises leaves neither rows nor `before_commit` items."""
    scope = current_scope()
    gathered = [
        {flush: list(items) for flush, items in queues.items()}
        for queues in (scope.gathered, scope.gathered_numbered, scope.gathered_last)
    ]
    locked, counted = dict(scope.locked), dict(scope.counted)
    before = [(row, dict(row.__dict__)) for row in locked.values()]
    try:
        with transaction.atomic():
            try:
                yield
            finally:
                _end_aborted_pipeline()
    # A cancelled block rolls back as well, and cancellation is no `Exception`.
    except BaseException:
        scope.gathered, scope.gathered_numbered, scope.gathered_last = gathered
        scope.counted, scope.locked = counted, locked
        # Rows that the block locked and changed in memory become what the database holds again.
        for row, values in before:
            row.__dict__.update(values)
        raise


def run_isolated(work: Callable[[Row], Out], row: Row, otherwise: Callable[[Exception], Out]) -> Out:
    """Run `work` on one row of a scope, in a savepoint.

    An error is logged by its type alone and answered by `otherwise`; a lost database is raised.
    """
    try:
        with savepoint():
            return work(row)
    except OperationalError:
        raise
    except Exception as error:  # noqa: BLE001 (an error of one row must not stop the others)
        _log.error(
            "row_left_out row=%s work=%s error=%s", getattr(row, "pk", row), _qualified_name(work), type(error).__name__
        )
        return otherwise(error)


def for_each_row(rows: Iterable[Row], work: Callable[[Row], int | None]) -> int:
    """The sum of `work` over these rows of a scope, each isolated: one row's error does not stop the others."""
    return sum(run_isolated(work, row, lambda _: 0) or 0 for row in rows)


def for_each_tenant(tenant_ids: Iterable[UUID], work: Callable[[UUID], int | None]) -> int:
    """The sum of `work` over these tenants, outside of any scope. One tenant's error does not stop the others.

    Errors are logged by their type alone, because their messages may quote secrets.
    """
    done = 0
    for tenant_id in tenant_ids:
        try:
            done += work(tenant_id) or 0
        except SilasError as error:
            if error.code not in COMPANY_CLOSED:
                _log_left_out(tenant_id, work, error)
        except Exception as error:  # noqa: BLE001 (an error of one tenant must not stop the others)
            _log_left_out(tenant_id, work, error)
    return done


def _log_left_out(tenant_id: UUID, work: object, error: Exception) -> None:
    _log.error("company_left_out tenant=%s work=%s error=%s", tenant_id, _qualified_name(work), type(error).__name__)


def in_tenant_scope(step: Callable[[], Out]) -> Callable[[UUID], Out]:
    """Wrap `step` so that it is called with a tenant's id and runs in that tenant's scope."""

    def in_its_scope(tenant_id: UUID) -> Out:
        with tenant_scope(tenant_id):
            return step()

    return wraps(step)(in_its_scope)


def _qualified_name(work: Any) -> str:
    while isinstance(work, partial):
        work = work.func
    return f"{work.__module__}.{work.__qualname__}"


@contextmanager
def platform_scope(reason: str) -> Iterator[None]:
    """Open a transaction that sees every tenant: administrators and upkeep only. Leaves `reason` in the audit log."""
    outer = _current.get()
    if not reason:
        raise ScopeError("a platform scope needs a reason")
    if outer is not None and outer.platform:
        yield
        return
    if outer is not None:
        raise ScopeError("a tenant's scope cannot widen to the platform")
    with _enter_scope(Scope(platform=True), None):
        platform_entered(reason)
        yield


@contextmanager
def lookup_scope(key: str) -> Iterator[None]:
    """Open a transaction that sees only the directory rows whose lookup column equals `key`.

    This is how a public key, an API key's hash or a user's id finds its tenant before a tenant is known.
    """
    if not key:
        raise ScopeError("a lookup needs a key")
    if _current.get() is not None:
        raise ScopeError("a lookup cannot be opened inside another scope")
    with _enter_scope(Scope(lookup=key), None):
        yield


@contextmanager
def _enter_scope(scope: Scope, outer: Scope | None) -> Iterator[None]:
    joined = connection.in_atomic_block
    # Inside a transaction a new connection would lose what it has done so far.
    if not joined:
        _renew_lost_connection()
    with nullcontext() if joined else transaction.atomic():
        if closed := _set_database_scope(scope):
            if joined:
                _set_database_scope(outer or Scope())
            raise SilasError(closed)
        token = _current.set(scope)
        try:
            yield
            _flush(scope)
        finally:
            _current.reset(token)
        # The transaction goes on, and the settings last as long as it does: give the outer scope its own back.
        if joined:
            _set_database_scope(outer or Scope())


def _flush(scope: Scope) -> None:
    if not (scope.gathered or scope.gathered_numbered or scope.gathered_last):
        return
    # The audit log alone is one statement.
    with pipeline(several=bool(scope.gathered or scope.gathered_numbered)):
        # A flush may gather more, such as an audit entry, so the lowest queue is looked up each time.
        while waiting := scope.gathered or scope.gathered_numbered or scope.gathered_last:
            flush = next(iter(waiting))
            flush(waiting.pop(flush))


@contextmanager
def pipeline(*, several: bool = True) -> Iterator[None]:
    """Send the statements of the block in one round trip, as far as it does not wait for their rows; inside another
    such block with that one's. Without `several` it is one statement, for which it would only cost the driver's work.
    """
    connection.ensure_connection()
    line = connection.connection
    # The driver would wait for all that was sent before at the beginning and at the end of an inner pipeline.
    if not several or line.pgconn.pipeline_status != PipelineStatus.OFF:
        yield
        return
    with connection.wrap_database_errors, line.pipeline():
        yield


def _end_aborted_pipeline() -> None:
    """After an error the server skips all statements up to the next synchronization, a rollback to a savepoint too."""
    line = connection.connection
    if line is not None and line.pgconn.pipeline_status == PipelineStatus.ABORTED:
        # The error that is being raised is the first; what was skipped says nothing new.
        with suppress(psycopg.Error), line.pipeline() as open_pipeline:
            open_pipeline.sync()


def _renew_lost_connection() -> None:
    """Replace a pooled connection whose server has gone, and have the pool drop the others like it."""
    connection.ensure_connection()
    if _is_connection_lost(connection.connection):
        connection.close()
        connection.pool.check()  # type: ignore[attr-defined]  # PostgreSQL's connections have one
        connection.ensure_connection()


def _is_connection_lost(line: psycopg.Connection[TupleRow]) -> bool:
    """Whether the server has sent a goodbye or the socket is closed: an idle connection has nothing else to read. Costs
    no round trip. In a process with a thousand sockets `select` would refuse the number of the connection's."""
    if line.pgconn.status != ConnStatus.OK:
        return True
    readable = select.poll()
    readable.register(line.fileno(), select.POLLIN)
    while line.pgconn.status == ConnStatus.OK and readable.poll(0):
        try:
            line.pgconn.consume_input()
        except psycopg.OperationalError:
            return True
    return line.pgconn.status != ConnStatus.OK


def _set_database_scope(scope: Scope) -> ErrorCode | None:
    """The error with which the scope of a closed company is refused."""
    with connection.cursor() as cursor:
        if not _refuses_closed or scope.tenant_id is None:
            cursor.execute(_SET_SCOPE, scope.settings())
            return None
        cursor.execute(_SET_OPEN_SCOPE, [*scope.settings(), str(scope.tenant_id)])
        (*_, closed) = cursor.fetchone()
        return _CLOSED.get(closed)


def _tenant_id(tenant: object) -> UUID:
    value = getattr(tenant, "pk", tenant)
    if not isinstance(value, UUID):
        raise ScopeError("a tenant scope needs a tenant")
    return value
