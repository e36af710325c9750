"""Create, change and delete inbox rules, which run when something happens in a conversation.

Only those who may administer change them. A rule that names a deleted label, member, team, chatbot or canned reply does
nothing until it is mended, and says so (`problem_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.inbox import inbox_rule_conditions as conditions_of
from apps.inbox import steps as steps_of
from apps.inbox.enums import Do, RuleMatch, RuleTrigger
from apps.inbox.inbox_rule_conditions import Subjects, bad_rule
from apps.inbox.inbox_rule_triggers import enqueue_for_waiting
from apps.inbox.models import InboxRule
from apps.inbox.staff import Staff, require_administrator
from apps.inbox.steps import ME, Names
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.named_rows import require_room, save_named, sound_name

MAX_NAME, MAX_RULES, MAX_MINUTES, MAX_POSITION = 60, 50, 7 * 24 * 60, 1000


@dataclass(frozen=True)
class RuleFields:
    """What a person says of a rule. `minutes` belong to the trigger `waiting`."""

    name: str
    trigger: str
    steps: Sequence[Mapping[str, object]]
    conditions: Sequence[Mapping[str, object]] = ()
    match: str = RuleMatch.ALL
    minutes: int = 0
    position: int = 1
    is_active: bool = False


def inbox_rules() -> list[InboxRule]:
    """All rules in the order in which they run."""
    return list(InboxRule.objects.all())


def inbox_rule(rule_id: UUID) -> InboxRule:
    """Raises `NotFound` for an unknown or foreign id."""
    rule: InboxRule | None = InboxRule.objects.filter(pk=rule_id).first()
    if rule is None:
        raise NotFound()
    return rule


def lock_rule(by: Staff, rule_id: UUID) -> InboxRule:
    """The rule, locked for a change by who may make it. Raises `NotFound`, 403 `forbidden_role`."""
    require_administrator(by)
    rule: InboxRule | None = InboxRule.objects.select_for_update(of=("self",), no_key=True).filter(pk=rule_id).first()
    if rule is None:
        raise NotFound()
    return rule


def fields_of(rule: InboxRule) -> RuleFields:
    return RuleFields(
        name=rule.name,
        trigger=rule.trigger,
        steps=rule.steps,
        conditions=rule.conditions,
        match=rule.match,
        minutes=rule.minutes,
        position=rule.position,
        is_active=rule.is_active,
    )


def save_rule(by: Staff, fields: RuleFields, *, rule_id: UUID | None = None) -> InboxRule:
    """A new rule, or the one with this id as it is from now on. Raises 400 `bad_name`, `bad_rule` and `bad_steps`, 409
    `name_taken` and `too_many`."""
    require_administrator(by)
    rule = lock_rule(by, rule_id) if rule_id else _new()
    apply_fields(rule, fields)
    rule.version += 1 if rule_id else 0
    save_named(rule)
    data = {"version": rule.version, "active": rule.is_active, "trigger": rule.trigger, "steps": len(rule.steps)}
    record(AuditEvent.INBOX_RULE_SAVED, actor=by.actor, subject=f"inbox_rule:{rule.pk}", data=data)
    if rule.is_active and rule.trigger == RuleTrigger.WAITING:
        enqueue_for_waiting(rule.minutes)
    return rule


def apply_fields(rule: InboxRule, fields: RuleFields) -> None:
    """Set the fields on the rule, which is not saved. Raises as `save_rule` does for a field that is wrong."""
    name = sound_name(fields.name, MAX_NAME)
    if fields.trigger not in RuleTrigger.values or fields.match not in RuleMatch.values:
        raise bad_rule(gettext("Choose when the rule runs."))
    waits = fields.trigger == RuleTrigger.WAITING
    if waits and not 1 <= fields.minutes <= MAX_MINUTES:
        raise bad_rule(gettext("Enter 1 to {most} minutes.").format(most=MAX_MINUTES))
    if not 1 <= fields.position <= MAX_POSITION:
        raise bad_rule(gettext("The order must be between 1 and {most}.").format(most=MAX_POSITION))
    rule.name, rule.trigger, rule.match = name, RuleTrigger(fields.trigger), RuleMatch(fields.match)
    rule.minutes, rule.position, rule.is_active = fields.minutes if waits else 0, fields.position, fields.is_active
    rule.conditions, rule.steps = conditions_of.sound(fields.conditions), _sound_steps(fields.steps)


def delete_rule(by: Staff, rule_id: UUID) -> None:
    rule = lock_rule(by, rule_id)
    version = rule.version
    rule.delete()
    record(AuditEvent.INBOX_RULE_DELETED, actor=by.actor, subject=f"inbox_rule:{rule_id}", data={"version": version})


def problem_of(rule: InboxRule, names: Names, subjects: Subjects) -> str:
    """Why the rule does nothing; empty if it can run."""
    if steps_of.is_missing(rule.steps, names) or conditions_of.is_missing(rule.conditions, subjects):
        return gettext("This rule doesn't run: something that it names was deleted. Choose something else and save.")
    return ""


def _new() -> InboxRule:
    require_room(InboxRule.objects.all(), MAX_RULES)
    return InboxRule()


def _sound_steps(given: Sequence[Mapping[str, object]]) -> list[dict[str, str]]:
    """As those of a macro, without what only a person can do, and with one reply at most."""
    steps = steps_of.sound(given)
    if any(step["do"] == Do.TAKE_OVER or (step["do"], step["value"]) == (Do.ASSIGN, ME) for step in steps):
        raise SilasError(ErrorCode.BAD_STEPS, gettext("A rule can't take over, and assigns to a named teammate."))
    if sum(step["do"] == Do.REPLY for step in steps) > 1:
        raise SilasError(ErrorCode.BAD_STEPS, gettext("A rule can send one reply."))
    return steps
