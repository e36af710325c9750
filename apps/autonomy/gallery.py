"""The gallery of ready automations: ten tasks that people ask for, each with its schedule, limits and route.

A template is a built-in workflow in plain words. Using one creates an ordinary task, which its owner may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.functional import Promise

from apps.autonomy.enums import BuiltinWorkflow, TriggerKind
from kernel.language import gettext_lazy as _


@dataclass(frozen=True)
class Template:
    """`reads` and `writes` say in a few words what it may read and what it leaves; `schedule` is its cron schedule."""

    workflow: BuiltinWorkflow
    title: str | Promise
    description: str | Promise
    reads: str | Promise
    writes: str | Promise
    schedule: str
    needs_model: bool = False
    limits: Mapping[str, Any] = field(default_factory=lambda: {"calls": 80})

    @property
    def key(self) -> str:
        return self.workflow.value

    @property
    def trigger(self) -> tuple[TriggerKind, dict[str, str]]:
        return TriggerKind.CRON, {"schedule": self.schedule}


_FINDINGS = _("Findings and a notification")

TEMPLATES = (
    Template(
        BuiltinWorkflow.UNHAPPY,
        _("Daily digest of unhappy conversations"),
        _("Lists conversations that were rated low, failed or waited long for a person, with the reasons."),
        _("Ratings, labels and times of conversations, not what visitors wrote"),
        _FINDINGS,
        "0 7 * * *",
    ),
    Template(
        BuiltinWorkflow.UNANSWERED,
        _("Drafts for unanswered questions"),
        _("Drafts answers to unanswered questions for your documents, starting with the most frequent question."),
        _("Unanswered questions and public documents"),
        _("Drafts that wait for your decision"),
        "30 2 * * *",
    ),
    Template(
        BuiltinWorkflow.CONTRADICTIONS,
        _("Contradictions in documents"),
        _("Compares figures in the newest documents with what other documents say about the same thing."),
        _("Public documents"),
        _FINDINGS,
        "0 3 * * *",
    ),
    Template(
        BuiltinWorkflow.PROMISES,
        _("Follow-up of promises not kept"),
        _("Finds conversations in which someone promised an answer by a certain time and nothing followed."),
        _("The last line of your team or the bot in open conversations"),
        _FINDINGS,
        "0 8 * * *",
    ),
    Template(
        BuiltinWorkflow.SLA_RISK,
        _("Customers who wait too long"),
        _("Finds customers who have waited over four hours for a person, and work that has waited a day for approval."),
        _("Times of waiting conversations and of work"),
        _FINDINGS,
        "0 * * * *",
    ),
    Template(
        BuiltinWorkflow.REFUNDS,
        _("Unusual refunds"),
        _("Finds refunds above the order's price, refunds paid twice, and customers with many refunds."),
        _("The books of orders and refunds"),
        _FINDINGS,
        "30 6 * * *",
    ),
    Template(
        BuiltinWorkflow.WEEKLY,
        _("Weekly insights in words"),
        _("Says in a few sentences how the week went, compared with the week before."),
        _("Figures about conversations, and the most frequent unanswered question"),
        _FINDINGS,
        "0 7 * * 1",
    ),
    Template(
        BuiltinWorkflow.STALE,
        _("Outdated documents"),
        _("Finds documents with dates that have passed, and documents that have not been updated for a year."),
        _("Documents"),
        _FINDINGS,
        "0 4 * * 1",
    ),
    Template(
        BuiltinWorkflow.TRANSLATION,
        _("Translation of new articles"),
        _("Proposes translations of new documents, into German unless its prompt names another language."),
        _("New documents, which are sent to your model provider"),
        _("Drafts that wait for your decision"),
        "0 5 * * *",
        needs_model=True,
        limits={"calls": 80, "cost_usd": "1.00"},
    ),
    Template(
        BuiltinWorkflow.MEMORY_REVIEW,
        _("Memory review"),
        _("Lists memories that have expired or have not been updated for 180 days, and proposals awaiting a decision."),
        _("The age of memories, not what they say"),
        _FINDINGS,
        "0 6 * * 1",
    ),
)
BY_KEY: Mapping[str, Template] = {template.key: template for template in TEMPLATES}
