"""An open console ends with its login and with the membership."""

from __future__ import annotations

from typing import Any

import pytest

from apps.console import consumers
from apps.console.consumers import FORBIDDEN, NOT_AUTHENTICATED
from apps.tenants import access, logins
from apps.tenants.models import Login, Membership, Tenant
from apps.tenants.services import remove_member
from kernel.tenancy import in_thread, tenant_scope
from tests.console.test_live import PATIENCE, _close_code, _line, _ready
from tests.factories.console import browser
from tests.factories.tenants import make_member


def _opened(user: Any) -> tuple[Login, dict[str, Any]]:
    session = browser(user).session
    return Login.objects.get(session_key=session.session_key), dict(session)


async def test_ended_login_closes_its_sockets(owner: Any) -> None:
    row, session = await in_thread(_opened, owner)
    line = await _ready(owner, session=session)
    await in_thread(logins.end, row.pk, user=owner)
    assert (await line.receive_output(PATIENCE))["code"] == NOT_AUTHENTICATED


async def test_other_logins_sockets_stay_open(owner: Any) -> None:
    row, _ = await in_thread(_opened, owner)
    _, session = await in_thread(_opened, owner)
    line = await _ready(owner, session=session)
    await in_thread(logins.end, row.pk, user=owner)
    await consumers.sweep()
    assert (await line.receive_json_from(PATIENCE))["type"] == "changed"  # the log has grown
    await line.disconnect()


async def test_sweep_closes_sockets_that_were_never_told(owner: Any) -> None:
    row, session = await in_thread(_opened, owner)
    line = await _ready(owner, session=session)
    await in_thread(Login.objects.filter(pk=row.pk).delete)
    await consumers.sweep()
    assert (await line.receive_output(PATIENCE))["code"] == NOT_AUTHENTICATED


async def test_removed_members_sockets_close(tenant: Any, agent: Any) -> None:
    line = await _ready(agent)

    def remove() -> None:
        with tenant_scope(tenant):
            remove_member(Membership.objects.get(user=agent))

    await in_thread(remove)
    assert (await line.receive_output(PATIENCE))["code"] == NOT_AUTHENTICATED


async def test_socket_is_no_way_around_a_required_second_factor(tenant: Any, agent: Any) -> None:
    await in_thread(Tenant.objects.filter(pk=tenant.pk).update, second_factor_required=True)
    assert await _close_code(_line(agent)) == FORBIDDEN


@pytest.mark.parametrize("is_member", [True, False])
async def test_socket_of_a_companys_login_opens_that_company_only(
    tenant: Any, other_tenant: Any, is_member: bool
) -> None:
    user = await in_thread(make_member, tenant, "agent")
    only = tenant if is_member else other_tenant
    line = _line(user, session={access.ONLY_TENANT: str(only.pk)})
    if is_member:
        await line.connect(timeout=PATIENCE)
        assert (await line.receive_json_from(PATIENCE))["type"] == "ready"
        await line.disconnect()
    else:
        assert await _close_code(line) == FORBIDDEN
