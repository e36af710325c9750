"""Does what is done for one company after another go on when one of them is in trouble?"""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from kernel.tenancy import over_each


def test_one_companys_trouble_stops_no_others(caplog: pytest.LogCaptureFixture) -> None:
    first, troubled, last = uuid4(), uuid4(), uuid4()
    done: list[UUID] = []

    def work(tenant_id: UUID) -> int:
        if tenant_id == troubled:
            raise OSError("what stands here may be a secret")
        done.append(tenant_id)
        return 2

    assert over_each([first, troubled, last], work) == 4
    assert done == [first, last]
    assert f"company_left_out tenant={troubled}" in caplog.text and "error=OSError" in caplog.text
    assert "secret" not in caplog.text
