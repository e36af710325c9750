"""Change the terms of a goal's standing approval by a spent approval for exactly that (spec 5.1.6, 5.9).

Always holds: the change itself lets nothing run. It ends, for fewer uses, the approval that counts now, and asks for a
standing approval with the new terms, on a card of its own; only that card's approval is ever spent by a child. A change
that no longer fits the goal, or exceeds a cap, changes nothing. Never for irreversible or high-risk actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

from apps.approvals.enums import ApprovalScope, CardStatus, Risk
from apps.approvals.models import ApprovalToken, Card
from apps.approvals.queries import count_uses
from apps.approvals.tokens.payloads import approvable
from apps.approvals.tokens.services import revoke_token, verify_token
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.models import Deployment, User
from apps.tenants.services import change_deployment
from apps.work import goal_templates
from apps.work.confidence import may_relax
from apps.work.enums import Direction, WorkItemStatus, WorkItemType, WorkReason
from apps.work.locks import lock_item
from apps.work.models import WorkItem
from apps.work.schemas import WorkItemSpec
from apps.work.services import goal_cycles, goals, screening
from apps.work.services.approval_requests import WORK_ITEM
from apps.work.services.items import create_item, move
from kernel import tracing
from kernel.clock import now
from kernel.errors import SilasError
from kernel.stored_texts import stored_text
from llm.calls import PlannedCall, replace_calls

SCOPE, USES, DAYS = "standing.scope", "standing.max_executions", "standing.expires_at"
# The most that good results may earn (spec 11, `max_standing_executions`).
MAX_USES, MAX_DAYS = 100, 90
_DAY = 86_400
_TIGHTENED = "Approvals were tightened."


@dataclass(frozen=True)
class StandingTerms:
    """What one standing approval allows: uses, days, and the arguments that its template leaves open."""

    uses: int
    days: int
    open_args: frozenset[str]
    tool: str

    @property
    def scope(self) -> str:
        return f"{self.tool} ({', '.join(sorted(self.open_args)) or '-'})"


@dataclass(frozen=True)
class StandingState:
    """A goal's standing approval now: its terms, and how it ended, if it has."""

    terms: StandingTerms
    used_up: bool
    expired: bool


def standing_state(goal: WorkItem) -> StandingState | None:
    """None for a goal that has had no standing approval: a first one is asked for by its author, never earned."""
    token, call = goal.approval_token, template_of(goal.spec)
    if token is None or call is None:
        return None
    days = max(1, round((token.expires_at - token.issued_at).total_seconds() / _DAY))
    terms = StandingTerms(token.max_executions, days, _open_args(call), call.tool)
    return StandingState(
        terms, used_up=count_uses(token.nonce) >= token.max_executions, expired=token.expires_at <= now()
    )


def template_of(spec: WorkItemSpec) -> PlannedCall | None:
    """The one call that the goal starts, or None."""
    if spec.type != WorkItemType.GOAL or not spec.failure_context:
        return None
    return goal_templates.template_call(spec.failure_context)


def may_earn(goal: WorkItem) -> bool:
    """Whether good results may widen the goal's standing approval: what its template runs must be of low or medium
    risk and reversible. False where its skill is not installed any more."""
    call = template_of(goal.spec)
    try:
        tool = screening.tools_in(goal.spec.skills).get(call.tool) if call else None
    except SilasError:
        return False
    return tool is not None and may_relax(reversible=tool.reversible, risk=Risk(tool.risk))


def changes(before: StandingTerms, after: StandingTerms) -> list[dict[str, str]]:
    """Return the exact ordered changes, as a card shows and an approval binds them."""
    pairs = [
        (SCOPE, before.scope, after.scope, after.open_args > before.open_args),
        (USES, str(before.uses), str(after.uses), after.uses > before.uses),
        (DAYS, str(before.days), str(after.days), after.days > before.days),
    ]
    return [
        {
            "key": key,
            "current_value": old,
            "proposed_value": new,
            "direction": (Direction.WIDEN if wider else Direction.TIGHTEN).value,
        }
        for key, old, new, wider in pairs
        if old != new
    ]


def wider_terms(state: StandingState) -> StandingTerms:
    """The terms one step further, in the way in which the approval ended; unchanged while it lasts, or at a cap."""
    terms = state.terms
    if state.used_up:
        return replace(terms, uses=max(terms.uses, min(MAX_USES, terms.uses + max(1, terms.uses // 2))))
    if state.expired:
        return replace(terms, days=max(terms.days, min(MAX_DAYS, terms.days * 2)))
    return terms


def tighter_terms(state: StandingState) -> StandingTerms:
    return replace(state.terms, uses=max(1, state.terms.uses // 2), days=max(1, state.terms.days // 2))


def opened(terms: StandingTerms, argument: str) -> StandingTerms:
    """The terms with one more argument left open."""
    return replace(terms, open_args=terms.open_args | {argument})


def apply(payload: Mapping[str, Any], token: ApprovalToken, *, user: User) -> Card | None:
    """Make the approved change, in the transaction of the decision; returns the card that asks for the standing
    approval, or None when the change is no longer valid, which is audited. Spends the approval either way."""
    # Changes of one chatbot one after the other: two could otherwise both start from the same terms.
    Deployment.objects.select_for_update(of=("self",), no_key=True).get(pk=payload["scope_id"])
    goal = lock_item(UUID(payload["goal_id"]))
    verdict = verify_token(token, approvable(ApprovalScope.AUTONOMY_THRESHOLD, payload))
    state = standing_state(goal)
    after = terms_after(state.terms, payload["changes"]) if state else None
    if not verdict.ok:
        fault = verdict.reason.value
    elif state is None or after is None or not _is_current(goal, state, after, payload):
        fault = "stale"
    elif _widens(state.terms, after) and not (may_earn(goal) and after.uses <= MAX_USES and after.days <= MAX_DAYS):
        fault = "beyond_cap"
    else:
        return _ask_for(goal, state.terms, after, user)
    record(AuditEvent.THRESHOLDS_REFUSED, subject=f"deployment:{payload['scope_id']}", data={"reason": fault})
    return None


def end(goal_id: UUID, *, user: User) -> bool:
    """End the goal's standing approval at once: each action needs its own approval again. False if it has none that
    could still be spent. Raises as `revoke_token`."""
    goal = lock_item(goal_id)
    state = standing_state(goal)
    if goal.approval_token is None or state is None or state.used_up or state.expired:
        return False
    revoke_token(goal.approval_token, user=user, reason=_TIGHTENED)
    return True


def _is_current(goal: WorkItem, state: StandingState, after: StandingTerms, payload: Mapping[str, Any]) -> bool:
    """The changes are those of the goal as it is, and no other card asks about it."""
    asked = Card.objects.filter(
        subject_kind=WORK_ITEM, subject_id=goal.pk, status__in=[CardStatus.OPEN, CardStatus.ASSIGNED]
    )
    return (
        goal.status != WorkItemStatus.BLOCKED
        and str(goal.deployment_id) == payload["scope_id"]
        and changes(state.terms, after) == [dict(change) for change in payload["changes"]]
        and not asked.exists()
    )


def _widens(before: StandingTerms, after: StandingTerms) -> bool:
    return after.uses > before.uses or after.days > before.days or not after.open_args <= before.open_args


def terms_after(before: StandingTerms, changes_: list[Mapping[str, str]]) -> StandingTerms | None:
    """Return the terms after these changes; None if a value is not valid."""
    values = {change["key"]: change["proposed_value"] for change in changes_}
    try:
        uses, days = int(values.get(USES, before.uses)), int(values.get(DAYS, before.days))
    except ValueError:
        return None
    if uses < 1 or days < 1:
        return None
    named = values.get(SCOPE, before.scope).removeprefix(f"{before.tool} (").removesuffix(")")
    open_args = frozenset(name for name in named.split(", ") if name != "-")
    return StandingTerms(uses, days, open_args, before.tool)


def _ask_for(goal: WorkItem, before: StandingTerms, after: StandingTerms, user: User) -> Card:
    if not _widens(before, after):
        end(goal.pk, user=user)
    if after.open_args != before.open_args:
        goal = _reworded(goal, after.open_args, actor=f"user:{user.pk}")
    record(
        AuditEvent.THRESHOLDS_CHANGED,
        actor=f"user:{user.pk}",
        subject=f"deployment:{goal.deployment_id}",
        data={"direction": "standing", "uses": after.uses, "days": after.days},
    )
    return goals.request_standing_approval(
        goal,
        uses=after.uses,
        days=after.days,
        rationale=stored_text("These terms were approved as a change. The permission itself is given here."),
    )


def _reworded(goal: WorkItem, open_args: frozenset[str], *, actor: str) -> WorkItem:
    """Replace the goal by one whose template leaves these arguments open; the standing approval of the old one ends
    with it."""
    call = template_of(goal.spec)
    assert call is not None and goal.spec.failure_context is not None
    args = {name: f"${name}" if name in open_args else value for name, value in call.args.items()}
    template = replace_calls(goal.spec.failure_context, [PlannedCall(call.tool, args)])
    spec = goal.spec.model_copy(update={"id": str(uuid4()), "failure_context": template})
    item = create_item(
        spec,
        deployment_id=goal.deployment_id,
        session_id=None,
        trace_id=tracing.trace_for_message(),
        requested_by=goal.requested_by,
    )
    move(item, WorkItemStatus.HEALTHY)
    goal_cycles.start_schedule(item)
    deployment: Deployment | None = Deployment.objects.filter(active_goal_id=goal.pk).first()
    if deployment is not None:
        change_deployment(deployment, actor=actor, active_goal_id=item.pk)
    # Last, since the old goal has to govern until the new one does.
    move(goal, WorkItemStatus.BLOCKED, reason=WorkReason.REPLANNED)
    return item


def _open_args(call: PlannedCall) -> frozenset[str]:
    return frozenset(name for name, value in call.args.items() if value == f"${name}")
