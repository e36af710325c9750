"""Run inbox rules on a conversation, each once for what triggered it.

Handler of `Kind.INBOX_RULES`, on the trusted worker. Each rule runs in a transaction of its own, which marks it as run,
all of its steps or none; a rule that ran before sees what the earlier ones did. What was changed meanwhile counts: the
conditions are asked of the conversation as it is now, of the message that triggered them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.bus.schemas import AlreadyProcessed
from apps.inbox import inbox_rule_conditions as conditions_of
from apps.inbox import inbox_rules, queries, rules, steps
from apps.inbox.enums import RuleMatch, RuleTrigger
from apps.inbox.inbox_rule_conditions import Subjects
from apps.inbox.models import InboxRule
from apps.inbox.queries import Listed
from apps.inbox.staff import RuleClient
from apps.inbox.steps import Names
from apps.sessions import chronicle, turn_pauses
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChronicleEntry
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import NotFound
from kernel.taint import Taint
from kernel.tenancy import in_scope

# The clock of the database, by which a job is due, and ours may differ by so much.
_CLOCKS = timedelta(seconds=5)


async def deliver(delivery: Delivery) -> None:
    payload = delivery.message.payload or {}
    for rule_id in await in_scope(delivery.tenant_id, rules_for, payload):
        with suppress(AlreadyProcessed):
            await in_scope(delivery.tenant_id, run_once, rule_id, payload, delivery.message.message_id)


def rules_for(payload: Mapping[str, Any]) -> list[UUID]:
    """The active rules of these triggers, in the order in which they run."""
    found = InboxRule.objects.filter(is_active=True, trigger__in=payload["triggers"])
    if RuleTrigger.WAITING in payload["triggers"]:
        found = found.filter(minutes=payload["minutes"])
    return list(found.values_list("pk", flat=True))


def run_once(rule_id: UUID, payload: Mapping[str, Any], message_id: str) -> bool:
    """Run the rule if its conditions are met; whether it did. Raises `AlreadyProcessed` the second time."""
    bus.mark_processed(f"inbox_rule:{rule_id}", message_id)
    rule: InboxRule | None = InboxRule.objects.filter(pk=rule_id, is_active=True).first()
    if rule is None or rule.trigger not in payload["triggers"]:
        return False
    session_id = UUID(payload["session"])
    try:
        turn_pauses.lock_pauses(session_id)
        lock_session(session_id)
        listed = queries.conversation(session_id)
    except NotFound:
        return False
    if listed.session.is_test or inbox_rules.problem_of(rule, Names(), Subjects()) or not _still_waits(rule, listed):
        return False
    text = _text_of(session_id, seq=payload["seq"])
    facts = conditions_of.facts_of(listed, rule.conditions, text=text, moment=now())
    if not rules.meets(facts, rule.conditions, RuleMatch(rule.match)):
        return False
    _run(rule, session_id, message_id)
    return True


def _text_of(session_id: UUID, *, seq: int) -> str:
    """The message that triggered the rules, else what the visitor wrote last."""
    said = ChronicleEntry.objects.filter(session=session_id, sender=Sender.VISITOR, kind=EntryKind.MESSAGE)
    rows = said.filter(seq=seq) if seq else said.order_by("-seq")
    return rows.values_list("text", flat=True).first() or ""


def _still_waits(rule: InboxRule, listed: Listed) -> bool:
    if rule.trigger != RuleTrigger.WAITING:
        return True
    since = listed.waiting_since
    return since is not None and since + timedelta(minutes=rule.minutes) <= now() + _CLOCKS


def _run(rule: InboxRule, session_id: UUID, message_id: str) -> None:
    by, subject = RuleClient(f"inbox_rule:{rule.pk}"), f"session:{session_id}"
    data = {"rule": str(rule.pk), "version": rule.version, "trigger": rule.trigger}
    record(AuditEvent.INBOX_RULE_RAN, actor=by.actor, subject=subject, data=data)
    reply = steps.run(rule.steps, session_id, by, nonce=sha256_hex([message_id, str(rule.pk)])[:40])
    session = lock_session(session_id)
    # Once a person answers, the chatbot says nothing more.
    if reply and session.owner == Owner.BOT:
        entry = chronicle.append(session, kind=EntryKind.MESSAGE, sender=Sender.BOT, text=reply, taint=Taint.AUTH)
        record(AuditEvent.INBOX_RULE_REPLIED, actor=by.actor, subject=subject, data={"seq": entry.seq})
