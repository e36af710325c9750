"""Signal receivers of this room, and the registration of its bus handlers.

Receivers run in the announcing transaction (`kernel.events`). Imported once, when Django is ready.
"""

from __future__ import annotations

from apps.approvals.enums import CardKind
from apps.approvals.registry import on_card
from apps.approvals.signals import card_decided, card_edited
from apps.autonomy.handlers import register_review
from apps.autonomy.queries import autonomy_settings
from apps.autonomy.services.bus_messages import enqueue_review
from apps.autonomy.signals import automations_enabled
from apps.bus.enums import Kind
from apps.bus.registry import register_job
from apps.suggestions import handlers
from apps.suggestions.services import calibration, outcomes, preferences, suggestion_schedule, suggestions
from apps.work.enums import WorkItemStatus
from apps.work.models import WorkItem
from apps.work.signals import Progress, work_changed


@work_changed.connect
def _on_work_done(item: WorkItem, status: str, progress: Progress) -> None:
    """Suggest the next steps that finished work names, only where unattended work is enabled (spec 11)."""
    if item.status == WorkItemStatus.DONE and progress.next_steps and autonomy_settings().enabled:
        enqueue_review(suggestions.AFTER_WORK, item.pk)


on_card(CardKind.AUTONOMY_THRESHOLD, calibration.PROPOSAL, decided=calibration.apply_decision)
on_card(CardKind.SUGGESTION, suggestions.SUGGESTION, decided=suggestions.apply_decision)
on_card(CardKind.DECISION, preferences.PREFERENCE, decided=preferences.apply_decision)
card_decided.connect(outcomes.record_decision)
card_edited.connect(outcomes.record_edit)
automations_enabled.connect(suggestion_schedule.schedule_suggestions)

register_job(Kind.SUGGESTION_LOOK, handlers.handle_suggestions, recurring=True)
register_review(suggestions.AFTER_WORK, handlers.suggest_after_work)
register_review(suggestions.PLAN, handlers.plan_suggestion)
register_review(preferences.PREFER, preferences.store_kept)
