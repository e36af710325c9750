"""Send a mail that staff wrote through the tools' mail account, as work that waits for approval: its draft is on the
card, can still be edited there, and its sending is verified like any work (spec 5.10.4)."""

from __future__ import annotations

from apps.connections import queries as connections
from apps.skills import queries as skills
from apps.skills.roles import inherited_skills
from apps.work.enums import WorkItemType
from apps.work.models import Course, WorkItem
from apps.work.provenance import trace_to
from apps.work.schemas import WorkItemSpec
from apps.work.services import drafts, plan_binding, screening
from apps.work.services.items import create_item
from apps.work.services.plan_binding import Terms
from kernel import tracing
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.provenance import Origin, Traced
from llm.calls import PlannedCall, call_block

MAIL_SKILL, MAIL_TOOL = "smtp-mail", "send_mail"


def can_send() -> bool:
    """Whether a mail account for tools is connected."""
    return bool(connections.account_name(MAIL_SKILL))


def propose_mail(*, to: str, subject: str, text: str, why: str, requested_by: str) -> WorkItem:
    """Put one mail before a person, in a process that may open cards. Raises `SilasError`: `connection_missing` and
    `connection_ambiguous` 409, `bad_arguments` for what cannot be sent, `gate_blocked`."""
    connections.account_for(MAIL_SKILL)
    mail = skills.pin([MAIL_SKILL])
    tools = screening.tools_in(mail)
    call = PlannedCall(MAIL_TOOL, {"to": to, "subject": subject, "text": text})
    try:
        (requested,) = screening.resolve_calls([call], tools)
    except SilasError as refusal:
        raise SilasError(
            refusal.code, gettext("It cannot be sent: {message}.").format(message=refusal.message), status=422
        ) from refusal
    plan = WorkItemSpec(id="letter", type=WorkItemType.TASK, title=subject, body=f"{why}\n\n{call_block(call)}")
    spec = plan_binding.bind_task(
        plan,
        [requested],
        Terms(by_staff=True, inherits=inherited_skills(mail), tracing=trace_to(Traced(Origin.STAFF, requested_by))),
    )
    item = create_item(
        spec, deployment_id=None, session_id=None, trace_id=tracing.trace_for_message(), requested_by=requested_by
    )
    Course.objects.create(work_item=item, granted=[MAIL_TOOL])
    drafts.request_draft_approval(item, [requested], context=why)
    return item
