"""The page *Queue*: how many messages each queue holds, who works on what, and what failed for good."""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.bus import dead_letters, queries
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.tenants.enums import Role

SHOWN = 50
QUEUE_NAMES = {
    Queue.PROXY: "Answering visitors",
    Queue.PLANNER: "Planning",
    Queue.EXECUTOR: "Executing",
    Queue.RUNTIME: "Coordination",
    Queue.TRUSTED: "Notifications, email and webhooks",
    Queue.WORK: "Set-ups and trials",
    Queue.PARSE: "Reading documents and websites",
    Queue.UPKEEP: "Checks and clean-up",
}
KIND_NAMES = {
    Kind.USER_MESSAGE: "A visitor's message",
    Kind.PLAN_REQUEST: "Plan request",
    Kind.PLAN_RESULT: "Plan",
    Kind.RESEARCH_REQUEST: "Research request",
    Kind.RESEARCH_RESULT: "Research result",
    Kind.EXECUTION_STATUS: "Work status",
    Kind.CONSULT_PLANNER: "Advice request",
    Kind.PLANNER_GUIDANCE: "Advice",
    Kind.REPLAN_REQUEST: "Replan request",
    Kind.SYSTEM_EVENT: "Maintenance",
    Kind.EXECUTION_REQUEST: "Approved work",
    Kind.AUTONOMOUS_SESSION: "Automation run",
    Kind.REVIEW_OWED: "Approval request of an automation",
    Kind.CONNECTION_OWED: "Approval request of a connection",
    Kind.CARD_EXPIRY: "Card expiry",
    Kind.CARD_ALERT: "Card alert",
    Kind.ACCOUNT_MAIL: "An email about an account",
    Kind.OUTBOX_DELIVERY: "A webhook or email",
    Kind.HOLD_ALERT: "Alert about a waiting agent",
    Kind.SAFETY_CODE_MAIL: "An email with a verification code",
    Kind.TRANSCRIPT_MAIL: "A transcript by email",
    Kind.DOCUMENT_CHANGE: "An approved change of a document",
    Kind.DOCUMENT_INTAKE: "A document or website to read",
    Kind.DOCUMENT_INDEX: "A document to index",
    Kind.CHECKPOINT: "A checkpoint of the audit log",
    Kind.RETENTION: "Deletion of expired data",
    Kind.FILE_CLEANUP: "Deletion of unused files",
    Kind.SKILL_TRIAL: "Trial run of a skill",
    Kind.SKILL_TRIED: "Result of a skill's trial run",
    Kind.CONNECTION_SETUP: "Set-up of a connection",
    Kind.CONNECTION_DISCOVERY: "A new connection to inspect",
    Kind.CONNECTION_CHECK: "Health check of a connection",
    Kind.KEYRING_CLEANUP: "Clean-up of the keyring",
    Kind.TOOL_SERVER_CHECK: "Check of a tool server",
    Kind.WAIT_END: "End of a wait",
    Kind.GOAL_CYCLE: "Next cycle of a goal",
    Kind.TRIGGER_DUE: "A trigger of an automation",
    Kind.SESSION_ADMISSION: "Start of an automation",
    Kind.SESSION_WATCH: "Check of a running automation",
    Kind.SUGGESTION_LOOK: "Suggestions to look for",
    Kind.LOST_CALLS: "Interrupted tool calls",
    Kind.SAFETY_EXPIRY: "Expiry in the safety loop",
}


@require_safe
@staff_view(*DECIDING_ROLES)
def queues(request: StaffRequest) -> HttpResponseBase:
    lines = [(QUEUE_NAMES[depth.queue], depth) for depth in queries.depths()]
    in_progress, dead = queries.held_messages(SHOWN + 1), queries.dead_letters(SHOWN + 1)
    return page(
        request,
        "console/queues.html",
        at="queues",
        lines=lines,
        held=[_named(message) for message in in_progress[:SHOWN]],
        dead=[_named(message) for message in dead[:SHOWN]],
        more_held=len(in_progress) > SHOWN,
        more_dead=len(dead) > SHOWN,
    )


@require_POST
@staff_view(Role.OWNER)
def retry(request: StaffRequest, message_id: UUID) -> HttpResponseBase:
    dead_letters.retry(message_id, user=request.member.user)
    return redirect("console-queues")


@require_POST
@staff_view(Role.OWNER)
def drop(request: StaffRequest, message_id: UUID) -> HttpResponseBase:
    dead_letters.drop(message_id, user=request.member.user)
    return redirect("console-queues")


def _named(message: QueueMessage) -> tuple[str, str, QueueMessage]:
    return KIND_NAMES[Kind(message.kind)], QUEUE_NAMES[Queue(message.queue)], message
