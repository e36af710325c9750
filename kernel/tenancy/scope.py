"""Whose rows may this transaction see?

A scope is a short database transaction that tells PostgreSQL, for its own length only, which tenant it serves; the
row-level security policies read that setting, so a query that forgot its filter still sees nothing foreign, and a
pooled connection handed on keeps no tenant. Nothing else may make these settings. No model, tool or network wait
inside a scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection, transaction
from psycopg_pool import PoolTimeout

from kernel.errors import SilasError
from kernel.events import Event

Flush = Callable[[list[Any]], None]


class ScopeError(SilasError):
    """Code touched tenant rows outside a scope, or tried to change tenant inside one. Always a bug of the caller."""

    def __init__(self, message: str) -> None:
        super().__init__("scope_error", message, status=403)


@dataclass
class Scope:
    tenant_id: UUID | None = None
    platform: bool = False
    lookup: str = ""
    gathered: dict[Flush, list[Any]] = field(default_factory=dict)
    gathered_last: dict[Flush, list[Any]] = field(default_factory=dict)
    locked: dict[Any, Any] = field(default_factory=dict)

    def settings(self) -> tuple[str, str, str]:
        return (str(self.tenant_id or ""), "on" if self.platform else "", self.lookup)


_current: ContextVar[Scope | None] = ContextVar("silas_scope", default=None)

# Told (reason) inside every new platform scope; the audit room records it, because seeing all tenants must leave a
# trace.
platform_entered: Event[[str]] = Event("platform_entered")


def leave_scope() -> None:
    """For a step in another thread: the caller's scope is another connection's transaction, and not the step's."""
    _current.set(None)


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


def gather_for_commit(flush: Flush, item: Any, *, last: bool = False) -> None:
    """Hand `item` to `flush` with all others gathered in this scope, once, just before COMMIT.

    `last` is for the audit log alone: it locks the row every writer of a tenant needs, so it comes after everything.
    What a rolled-back scope gathered is dropped with it.
    """
    scope = current_scope()
    (scope.gathered_last if last else scope.gathered).setdefault(flush, []).append(item)


@contextmanager
def tenant_scope(tenant: Any) -> Iterator[UUID]:
    """Open a transaction that sees `tenant` (a row or its id) only; joins a scope of the same tenant.

    Raises `ScopeError` for None and inside a scope of another tenant. Inside a platform scope it narrows.
    """
    tenant_id = _tenant_id(tenant)
    outer = _current.get()
    if outer is not None and outer.tenant_id == tenant_id:
        yield tenant_id
        return
    if outer is not None and not outer.platform:
        raise ScopeError("a scope of one tenant cannot open another's")
    with _entered(Scope(tenant_id=tenant_id), outer):
        yield tenant_id


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
    with _entered(Scope(platform=True), None):
        platform_entered(reason)
        yield


@contextmanager
def lookup_scope(key: str) -> Iterator[None]:
    """Open a transaction that sees only the directory rows whose lookup column equals `key`: how a public key, an API
    key's hash or a user's id finds its tenant before a tenant is known."""
    if not key:
        raise ScopeError("a lookup needs a key")
    if _current.get() is not None:
        raise ScopeError("a lookup cannot be opened inside another scope")
    with _entered(Scope(lookup=key), None):
        yield


@contextmanager
def _entered(scope: Scope, outer: Scope | None) -> Iterator[None]:
    joined = connection.in_atomic_block
    with _begun(scope, joined=joined):
        token = _current.set(scope)
        try:
            yield
            _flush(scope)
        finally:
            _current.reset(token)
        if joined:
            _tell_database(outer or Scope())


def _begun(scope: Scope, *, joined: bool) -> ExitStack:
    """A transaction that serves `scope`, to be left like any other.

    A pooled connection whose server has been restarted shows that at its first statement. Nothing was done on it yet,
    so the pool is rid of all such and the transaction begins once more.
    """
    try:
        return _begin(scope)
    except OperationalError as error:
        if joined or isinstance(error.__cause__, PoolTimeout):
            raise
    connection.close()
    connection.pool.check()  # type: ignore[attr-defined]  # PostgreSQL's connections have one
    return _begin(scope)


def _begin(scope: Scope) -> ExitStack:
    with ExitStack() as opened:
        opened.enter_context(transaction.atomic(savepoint=False))
        _tell_database(scope)
        return opened.pop_all()


def _flush(scope: Scope) -> None:
    while waiting := scope.gathered or scope.gathered_last:
        flush = next(iter(waiting))
        flush(waiting.pop(flush))


def _tell_database(scope: Scope) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('silas.tenant', %s, true), set_config('silas.platform', %s, true),"
            " set_config('silas.lookup', %s, true)",
            scope.settings(),
        )


def _tenant_id(tenant: Any) -> UUID:
    value = getattr(tenant, "pk", tenant)
    if not isinstance(value, UUID):
        raise ScopeError("a tenant scope needs a tenant")
    return value
