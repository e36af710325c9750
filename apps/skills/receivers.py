"""Register what becomes of this room's cards, and its jobs."""

from __future__ import annotations

from apps.approvals.enums import CardKind
from apps.approvals.registry import on_card
from apps.bus import retention
from apps.bus.enums import Kind
from apps.bus.registry import on_dead_letter, register_job
from apps.skills import cleanup, trials

register_job(Kind.SKILL_TRIAL, trials.run_trial)
register_job(Kind.SKILL_TRIED, trials.handle_report)
on_dead_letter(trials.give_up, Kind.SKILL_TRIAL)
retention.register(cleanup.delete_batch)

on_card(CardKind.SKILL_INSTALL, trials.SUBJECT, decided=trials.apply_decision, ended=trials.withdraw_unanswered)
