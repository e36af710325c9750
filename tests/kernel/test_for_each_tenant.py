"""Does what is done for one company after another go on when one of them is in trouble?"""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError

from apps.tenants.models import Deployment
from kernel.tenancy import before_commit, for_each_row, for_each_tenant, savepoint, tenant_scope
from kernel.tenancy.scope import current_scope


def test_one_companys_trouble_stops_no_others(caplog: pytest.LogCaptureFixture) -> None:
    first, troubled, last = uuid4(), uuid4(), uuid4()
    done: list[UUID] = []

    def work(tenant_id: UUID) -> int:
        if tenant_id == troubled:
            raise OSError("what stands here may be a secret")
        done.append(tenant_id)
        return 2

    assert for_each_tenant([first, troubled, last], work) == 4
    assert done == [first, last]
    assert f"company_left_out tenant={troubled}" in caplog.text and "error=OSError" in caplog.text
    assert "secret" not in caplog.text


def test_rows_trouble_stops_no_other_row_and_leaves_nothing_of_its_own(
    tenant: Any, caplog: pytest.LogCaptureFixture
) -> None:
    flushed: list[Any] = []

    def flush(items: list[Any]) -> None:
        flushed.extend(items)

    def work(number: int) -> int:
        Deployment.objects.create(slug=f"row-{number}", title="Row", public_key=str(uuid4()))
        before_commit(flush, number)
        current_scope().counted[number] = True
        if number == 2:
            raise ValueError("what stands here may be a secret")
        return 1

    with tenant_scope(tenant):
        assert for_each_row([1, 2, 3], work) == 2
        assert set(current_scope().counted) == {1, 3}
        assert set(Deployment.objects.values_list("slug", flat=True)) == {"row-1", "row-3"}
    assert flushed == [1, 3]
    assert "row_left_out row=2" in caplog.text
    assert "error=ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_database_that_is_away_stops_all_rows(tenant: Any) -> None:
    def work(number: int) -> int:
        raise OperationalError

    with pytest.raises(OperationalError), tenant_scope(tenant):
        for_each_row([1, 2], work)


def test_row_that_was_locked_before_is_as_it_was(tenant: Any) -> None:
    row = Thing()
    with tenant_scope(tenant):
        current_scope().locked["thing"] = row
        with pytest.raises(ValueError, match="no"):
            _fail(row)
        assert set(current_scope().locked) == {"thing"}
    assert row.seq == 0


class Thing:
    def __init__(self) -> None:
        self.seq = 0


def _fail(row: Thing) -> None:
    with savepoint():
        row.seq = 7
        current_scope().locked["new"] = Thing()
        raise ValueError("no")
