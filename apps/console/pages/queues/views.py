"""The page *Queue*: how many messages each queue holds, who works on what, and what failed for good."""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from apps.bus import dead_letters, queries
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.tenants.enums import Role

SHOWN = 50
QUEUE_NAMES = {
    Queue.PROXY: gettext_lazy("Answering visitors"),
    Queue.PLANNER: gettext_lazy("Planning"),
    Queue.EXECUTOR: gettext_lazy("Executing"),
    Queue.RUNTIME: gettext_lazy("Coordination"),
    Queue.TRUSTED: gettext_lazy("Notifications, email and webhooks"),
    Queue.WORK: gettext_lazy("Set-ups and trials"),
    Queue.PARSE: gettext_lazy("Reading documents and websites"),
    Queue.UPKEEP: gettext_lazy("Checks and clean-up"),
    Queue.SIMULATION: gettext_lazy("Simulations"),
}
KIND_NAMES = {
    Kind.USER_MESSAGE: gettext_lazy("A visitor's message"),
    Kind.PLAN_RESULT: gettext_lazy("Plan"),
    Kind.RESEARCH_REQUEST: gettext_lazy("Research request"),
    Kind.RESEARCH_RESULT: gettext_lazy("Research result"),
    Kind.EXECUTION_STATUS: gettext_lazy("Work status"),
    Kind.CONSULT_PLANNER: gettext_lazy("Advice request"),
    Kind.PLANNER_GUIDANCE: gettext_lazy("Advice"),
    Kind.REPLAN_REQUEST: gettext_lazy("Replan request"),
    Kind.SYSTEM_EVENT: gettext_lazy("Maintenance"),
    Kind.EXECUTION_REQUEST: gettext_lazy("Approved work"),
    Kind.AUTONOMOUS_SESSION: gettext_lazy("Automation run"),
    Kind.REVIEW_OWED: gettext_lazy("Approval request of an automation"),
    Kind.CONNECTION_OWED: gettext_lazy("Approval request of a connection"),
    Kind.CARD_EXPIRY: gettext_lazy("Card expiry"),
    Kind.CARD_ALERT: gettext_lazy("Card alert"),
    Kind.ACCOUNT_MAIL: gettext_lazy("An email about an account"),
    Kind.OUTBOX_DELIVERY: gettext_lazy("A webhook or email"),
    Kind.HOLD_ALERT: gettext_lazy("Alert about a waiting agent"),
    Kind.SAFETY_CODE_MAIL: gettext_lazy("An email with a verification code"),
    Kind.TRANSCRIPT_MAIL: gettext_lazy("A transcript by email"),
    Kind.DOCUMENT_CHANGE: gettext_lazy("An approved change of a document"),
    Kind.DOCUMENT_INTAKE: gettext_lazy("A document or website to read"),
    Kind.DOCUMENT_INDEX: gettext_lazy("A document to index"),
    Kind.CHECKPOINT: gettext_lazy("A checkpoint of the audit log"),
    Kind.RETENTION: gettext_lazy("Deletion of expired data"),
    Kind.FILE_CLEANUP: gettext_lazy("Deletion of unused files"),
    Kind.SKILL_TRIAL: gettext_lazy("Trial run of a skill"),
    Kind.SKILL_TRIED: gettext_lazy("Result of a skill's trial run"),
    Kind.CONNECTION_SETUP: gettext_lazy("Set-up of a connection"),
    Kind.CONNECTION_DISCOVERY: gettext_lazy("A new connection to inspect"),
    Kind.CONNECTION_CHECK: gettext_lazy("Health check of a connection"),
    Kind.KEYRING_CLEANUP: gettext_lazy("Clean-up of the keyring"),
    Kind.TOOL_SERVER_CHECK: gettext_lazy("Check of a tool server"),
    Kind.WAIT_END: gettext_lazy("End of a wait"),
    Kind.GOAL_CYCLE: gettext_lazy("Next cycle of a goal"),
    Kind.TRIGGER_DUE: gettext_lazy("A trigger of an automation"),
    Kind.SESSION_ADMISSION: gettext_lazy("Start of an automation"),
    Kind.SESSION_WATCH: gettext_lazy("Check of a running automation"),
    Kind.SUGGESTION_LOOK: gettext_lazy("Suggestions to look for"),
    Kind.LOST_CALLS: gettext_lazy("Interrupted tool calls"),
    Kind.SAFETY_EXPIRY: gettext_lazy("Expiry in the safety loop"),
    Kind.MEMORY_CONSOLIDATION: gettext_lazy("Duplicate memories to merge"),
    Kind.SIMULATION_RUN: gettext_lazy("Start of a simulation"),
    Kind.SIMULATION_CHUNK: gettext_lazy("Simulated conversations"),
    Kind.SOURCE_SYNC: gettext_lazy("A website to read again"),
    Kind.GAP_CLUSTERING: gettext_lazy("Unanswered questions to group"),
    Kind.MEMORY_EMBEDDING: gettext_lazy("Imported memories to index"),
    Kind.MEMORY_READING: gettext_lazy("New memories to read"),
    Kind.PROVIDER_EMBEDDING: gettext_lazy("Passages and memories to embed"),
    Kind.IMPORT_READ: gettext_lazy("An export to read"),
    Kind.IMPORT_APPLY: gettext_lazy("Contacts and conversations to import"),
    Kind.CHANNEL_INBOUND: gettext_lazy("A message from a channel to take in"),
    Kind.CHANNEL_DELIVERY: gettext_lazy("A message to send over a channel"),
    Kind.CARD_NOTICE: gettext_lazy("A card to send to approvers"),
    Kind.DESK_ROUTING: gettext_lazy("A conversation to assign"),
    Kind.INBOX_RULES: gettext_lazy("Inbox rules to run"),
    Kind.PERSON_ERASURE: gettext_lazy("Personal data to erase"),
    Kind.SLA_CLOCKS: gettext_lazy("SLA clocks to update"),
    Kind.CHANNEL_POLL: gettext_lazy("A mailbox to look into"),
    Kind.MAIL_READ: gettext_lazy("An email to read"),
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
    return str(KIND_NAMES[Kind(message.kind)]), str(QUEUE_NAMES[Queue(message.queue)]), message
