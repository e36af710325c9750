"""Is what a worker leaves to a web process carried out there, and never taken for a visitor's message?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apps.bus.models import QueueMessage
from apps.sessions import runner
from apps.work.services import desk as left
from kernel.tenancy import in_thread, tenant_scope
from tests.factories.work import make_desk


def _leave(tenant: Any, tmp_path: Path) -> str:
    goal_id = make_desk(tenant, tmp_path).goal_id
    with tenant_scope(tenant):
        left.route(goal_id, [], cycle="1", trace_id="a")
        return str(QueueMessage.objects.get(queue="proxy", kind="system_event").scope_id)


def _states(tenant: Any) -> list[str]:
    with tenant_scope(tenant):
        return list(QueueMessage.objects.filter(queue="proxy", kind="system_event").values_list("state", flat=True))


async def test_what_a_worker_left_is_no_conversation(tenant: Any, tmp_path: Path) -> None:
    assert not runner.is_conversation(await in_thread(_leave, tenant, tmp_path))


async def test_what_a_worker_left_is_carried_out_by_the_web_process(tenant: Any, tmp_path: Path) -> None:
    scope = await in_thread(_leave, tenant, tmp_path)
    await runner._serve(tenant.pk, scope)
    assert await in_thread(_states, tenant) == ["acked"]
