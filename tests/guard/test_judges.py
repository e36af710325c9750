"""A gate's question to a model passes the door: admitted, paid, settled, and stopped with its run."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from pydantic_ai.models import override_allow_model_requests

from apps.gates.allowance import Allowance
from apps.gates.schemas import GateReport, GateSpec
from apps.gates.services import check_gates
from apps.guard import services
from apps.guard.enums import Period
from apps.guard.models import GuardedRun, ToolCall
from apps.guard.schemas import RunRef
from apps.guard.services import GateJudge
from kernel.tenancy import tenant_scope
from llm.judge import Question
from llm.keys import ProviderKeys
from tests.factories.guard import make_run, reread
from tests.fakes.openai_server import Reply, final, serving

MODEL = "openai:gpt-4o-mini"
GATE = GateSpec(name="kind", on="every_user_message", provider="llm", config={"policy": "Be kind."})
BINDING = GATE.model_copy(update={"promote_to_policy": True})


def judged(run: Any, *replies: Reply, gate: GateSpec = GATE, model: str = MODEL, may_ask: Any = None) -> GateReport:
    """The gate's report, asked in a thread as turns do."""

    async def ask() -> GateReport:
        async with serving(list(replies)) as fake:
            judge = GateJudge(
                run.ref,
                model,
                asyncio.get_running_loop(),
                keys=ProviderKeys(environment=True),
                base_url=fake.base_url,
                may_ask=may_ask,
            )
            allowance = Allowance(ask=judge)
            context = {"message": "hello"}
            return await asyncio.to_thread(check_gates, [gate], gate.on, context, allowance=allowance)

    with override_allow_model_requests(True):
        return asyncio.run(ask())


@pytest.fixture
def run(tenant: Any) -> GuardedRun:
    return make_run(tenant)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def rows(tenant: Any) -> list[ToolCall]:
    with tenant_scope(tenant):
        return list(ToolCall.objects.order_by("seq"))


def test_question_is_a_model_run_that_is_paid(tenant: Any, run: Any) -> None:
    report = judged(run, final({"score": 0.5}))
    (call,) = rows(tenant)
    assert report.quality[0].score == 0.5
    assert call.tool == "gate"
    assert call.state == "executed"
    assert call.charged > 0


def test_prose_is_paid_and_is_no_answer(tenant: Any, run: Any) -> None:
    report = judged(run, Reply(text="It is fine."))
    (call,) = rows(tenant)
    assert report.quality[0].flags == ("llm_error",)
    assert call.state == "error"
    assert call.error_code == "ShapeBroken"


def test_promoted_gate_with_a_provider_that_is_down_blocks_and_leaves_nothing_reserved(run: Any) -> None:
    assert judged(run, Reply(status=500), gate=BINDING).blocked is not None
    assert reread(run).cost_reserved == 0


def test_promoted_gate_decides_through_the_door(run: Any) -> None:
    report = judged(run, final({"action": "block"}), gate=BINDING)
    assert report.blocked is not None and report.blocked.code == "llm_said"


@pytest.mark.parametrize("stop", ["halt", "budget"])
def test_halted_run_and_used_up_budget_ask_no_model(tenant: Any, run: Any, stop: str) -> None:
    with tenant_scope(tenant):
        if stop == "halt":
            GuardedRun.objects.filter(pk=run.pk).update(halt_state="halted")
        else:
            services.set_budget(Period.DAY, Decimal("0.000000001"))
    report = judged(run, final({"action": "continue"}), gate=BINDING)
    assert report.blocked is not None
    assert report.blocked.code == "llm_error"


@pytest.mark.parametrize("gate", [GATE, BINDING])
def test_gate_whose_model_has_no_price_is_no_answer_and_ends_no_work(tenant: Any, gate: GateSpec) -> None:
    working = make_run(tenant, origin="work", phase="execution")
    report = judged(working, final({"score": 1}), gate=gate, model="openai:nobody-knows-this")
    flags = [result.flags for result in (*report.policy, *report.quality)]
    assert flags == [("llm_error",)]
    assert reread(working).halt_state == working.halt_state


def test_built_in_model_answers_no_gate(run: Any) -> None:
    assert judged(run, final({"score": 1}), model="builtin:grounded").quality[0].flags == ("llm_error",)


async def test_judge_called_on_its_own_loop_is_refused_at_once(tenant: Any) -> None:
    """It would wait for itself."""
    judge = GateJudge(RunRef(tenant.pk, tenant.pk), MODEL, asyncio.get_running_loop())
    with pytest.raises(RuntimeError):
        judge(Question("Be kind.", "hello"))


def test_gate_is_not_asked_where_there_were_too_many_runs(tenant: Any, run: Any) -> None:
    async def never(model: str) -> bool:
        return False

    report = judged(run, final({"action": "continue"}), gate=BINDING, may_ask=never)
    assert report.blocked is not None
    assert report.blocked.code == "llm_error"
    assert rows(tenant) == []
