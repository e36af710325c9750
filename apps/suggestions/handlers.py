"""Handlers of this room's bus messages, in `trusted` workers: only they open cards and write to memory.

Registered in `receivers`. Every handler is safe to run twice.
"""

from __future__ import annotations

from uuid import UUID

from apps.bus.deliveries import Delivery
from apps.suggestions.models import Suggestion
from apps.suggestions.services import calibration, preferences, suggestion_schedule, suggestions
from apps.work.planner import paid_run
from apps.work.services import follow_ups
from apps.work.services.follow_ups import FollowUpJob
from kernel.tenancy import in_scope, run_isolated


async def handle_suggestions(delivery: Delivery) -> None:
    """Look for suggestions at each deployment of the company; an error at one does not stop the others."""
    for deployment_id in await in_scope(delivery.tenant_id, suggestion_schedule.deployments_to_check):
        await in_scope(delivery.tenant_id, run_isolated, _suggest, deployment_id, lambda _: None)
    await delivery.reschedule(suggestion_schedule.next_check)


def _suggest(deployment_id: UUID) -> None:
    calibration.propose_changes(deployment_id)
    preferences.propose_preferences(deployment_id)
    suggestions.suggest_from_rows(deployment_id)


async def suggest_after_work(delivery: Delivery, item_id: UUID) -> None:
    await delivery.commit(suggestions.suggest_after_work, item_id)


async def plan_suggestion(delivery: Delivery, suggestion_id: UUID) -> None:
    """Plan what an accepted suggestion names. The model runs outside every scope; the plan needs its own approval."""
    job = await in_scope(delivery.tenant_id, _follow_up_job, suggestion_id)
    if job is None:
        return
    run = await paid_run(job)
    action = run.output.plan_action if run is not None else None
    plan = (action.plan_markdown or "") if action is not None else ""
    await delivery.commit(_propose_plan, job, plan, delivery.message.trace_id, suggestion_id)


def _follow_up_job(suggestion_id: UUID) -> FollowUpJob | None:
    row = Suggestion.objects.filter(pk=suggestion_id).first()
    if row is None or not row.subject.startswith("work:"):
        return None
    request = row.intent.removeprefix("Next: ")
    return follow_ups.open_job(UUID(row.subject.removeprefix("work:")), request, asked_by=row.pk)


def _propose_plan(job: FollowUpJob, plan_markdown: str, trace_id: str, suggestion_id: UUID) -> None:
    proposal = follow_ups.propose_follow_up(job, plan_markdown, trace_id=trace_id)
    led_to = f"work:{proposal.work_item_id}" if proposal.work_item_id else "no_plan"
    Suggestion.objects.filter(pk=suggestion_id).update(led_to=led_to)
