"""A card of every kind, as the features that ask would open it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from apps.approvals.cards.schemas import Fact
from apps.approvals.enums import ApprovalScope as Scope
from apps.approvals.enums import CardKind
from apps.approvals.models import Card
from apps.approvals.tokens import payloads
from kernel.tenancy import tenant_scope
from tests.factories.approvals import make_plan, put

Fields = dict[str, Any]
HASH = "5c" * 32
MAIL = "Dear Ms Ortega,\n\nyour new policy documents are on their way to Canal Wharf.\n\nMeridian Insurance"


def _words(intent: str, rationale: str, **consequence: str) -> Fields:
    return {"intent": intent, "rationale": rationale, "consequence": consequence}


def _step(tool: str, **args: Any) -> Fields:
    return payloads.call_payload(tool, args, work_item_id=str(uuid4()), plan_hash=HASH, step=0)


def _plan() -> Fields:
    return {
        **_words(
            "Change the postal address on policy HM-20418",
            "Maria moved on Monday and asked for her documents to go to the new flat.",
            approve="Change the address",
            decline="Nothing changes",
        ),
        "payload": make_plan(),
        "scope": Scope.FULL_PLAN,
        "affected": "1 policy, 2 future letters",
        "facts": [Fact("Address", before="18 Alder Court, Leeds", after="Flat 3, 41 Canal Wharf, Leeds")],
        "details": {"plan": "Change it.", "checks": [{"name": "postcode_is_new"}], "gates": ["identity_verified"]},
    }


def _standing() -> Fields:
    return {
        **_words(
            "Let “Refund small orders” run refund_order without asking, up to 20 times in 30 days",
            "Twelve such refunds were approved unchanged this week.",
            approve="Allow up to 20 times",
            decline="Ask every time",
        ),
        "payload": make_plan(type="goal", failure_context="Fix: $failed_checks"),
        "scope": Scope.STANDING,
    }


def _gate() -> Fields:
    return {
        **_words(
            "Run this call",
            "A gate requires approval here.",
            approve="Run it with these values",
            decline="Don't run it",
        ),
        "payload": payloads.gate_payload(
            str(uuid4()),
            "on_tool_call",
            [{"name": "refund_limit", "reason": "148 needs a person's approval"}],
            {"tool": "refund_order", "args": {"order": "H-90211", "amount": "148.00"}},
        ),
        "scope": Scope.SINGLE_STEP,
    }


def batch(items: int = 4) -> Fields:
    ids = [f"T-{number}" for number in range(1, items + 1)]
    lines = [
        {
            "item_id": each,
            "title": f"Ticket {each}: where is my parcel?",
            "actor": "Maria Ortega",
            "reason": "Answered, and nobody wrote for a week",
            "confidence": 0.55 if place == 1 else 0.94,
            "unusual": place == 1,
        }
        for place, each in enumerate(ids)
    ]
    return {
        **_words(
            f"Archive {items} answered tickets",
            "They were answered and have been silent for a week.",
            approve=f"Archive all {items}",
            edit_selection="Archive only the ticked ones",
            decline="Leave them where they are",
        ),
        "payload": payloads.batch_payload(goal_id="g-1", action="archive", item_ids=ids),
        "body": {"items": lines, "reason_summary": "Silent for a week", "confidence_min": 0.55},
        "scope": Scope.CONNECTION_ACT,
        "affected": f"{items} tickets, 1 of them unusual",
    }


def _draft() -> Fields:
    return {
        **_words(
            "Send Maria Ortega a letter about her new address",
            "She asked for a confirmation in writing.",
            approve="Send it as it stands",
            decline="Send nothing",
        ),
        "payload": _step("send_letter", to="maria@example.test", text=MAIL),
        "body": {
            "context": "Could you confirm the new address in writing?",
            "draft": MAIL,
            "metadata": {"to": "maria@example.test", "by": "e-mail"},
        },
        "scope": Scope.SINGLE_STEP,
        "reversible": False,
    }


def _decision() -> Fields:
    options = [
        {"label": "Send it to the new address", "value": "new"},
        {"label": "Send it to the old one", "value": "old"},
    ]
    return {
        **_words(
            "Where should the welcome letter go?",
            "The policy has two addresses and the customer did not say which.",
            decline="Leave it for now",
        ),
        "payload": {"question": "Which address is meant?", "options": options, "allow_freetext": True},
        "scope": Scope.SINGLE_STEP,
    }


def _suggestion() -> Fields:
    return {
        **_words(
            "Write to the three customers who waited longest",
            "Their cases have been open for two weeks.",
            approve="Prepare the letters",
            decline="Not now",
        ),
        "payload": {
            "suggestion_id": str(uuid4()),
            "scope_id": "scope-1",
            "source": "goal_monitor",
            "cooldown_key": "stale-cases",
            "options": [{"label": "Only remind me on Monday", "value": "monday"}],
        },
        "scope": Scope.SINGLE_STEP,
    }


def _autonomy() -> Fields:
    change = {
        "key": "standing.max_executions",
        "current_value": "20",
        "proposed_value": "40",
        "direction": "widen",
    }
    return {
        **_words(
            "Let small refunds run 40 times instead of 20 before asking again",
            "2 of the last 60 were corrected.",
            approve="Widen to 40",
            decline="Keep 20",
        ),
        "payload": payloads.autonomy_payload(
            scope_id="scope-1",
            goal_id="g-1",
            changes=[change],
            sample_size=60,
            correction_rate=0.033,
            evidence_window="the last 14 days",
        ),
        "scope": Scope.AUTONOMY_THRESHOLD,
    }


def _post_execution() -> Fields:
    return {
        **_words(
            "Archived 3 tickets",
            "You approved this two minutes ago; each was checked afterwards.",
            approve="Undo, bring 3 tickets back",
            decline="Leave them archived",
        ),
        "payload": payloads.batch_payload(goal_id="w-1", action="undo", item_ids=["u-1", "u-2", "u-3"]),
        "body": {
            "results": [{"title": f"Ticket T-{number}", "outcome": "archived"} for number in (1, 2, 3)],
            "proof": "3 checks outside the agent",
        },
        "scope": Scope.CONNECTION_ACT,
        "affected": "3 tickets",
        "seconds": 300,
    }


def _skill() -> Fields:
    return {
        **_words(
            "Install skill “claims-triage” v2",
            "Claims are sorted by hand today; this sorts them by what the policy covers.",
            approve="Install it and let the bot use it",
            decline="Do not install it",
        ),
        "payload": {"skill": "claims-triage", "content_hash": HASH, "report_hash": "ab" * 32},
        "body": {
            "version": "2",
            "description": "Sorts incoming claims by cover.",
            "source": "github.com/meridian/claims-triage",
            "scripts": ["sort.py"],
            "tools": ["sort_claim"],
            "report": ["No network asked for", "1 script checked"],
        },
        "scope": Scope.SKILL_INSTALL,
    }


def _budget() -> Fields:
    return {
        **_words(
            "Let “Yearly statements” spend up to $6.00",
            "It has used $1.96 of $2.00 and has 40 of 60 letters done.",
            approve="Raise it to $6.00",
            decline="Stop at $2.00",
        ),
        "payload": {
            "work_item_id": str(uuid4()),
            "plan_hash": HASH,
            "before": {"max_cost_usd": "2.00", "max_attempts": 3},
            "after": {"max_cost_usd": "6.00", "max_attempts": 3},
        },
        "scope": Scope.BUDGET,
    }


def _rights(before: list[str], after: list[str], operation: str) -> Fields:
    return {
        "payload": {"connection_id": "c-1", "operation": operation, "before": before, "after": after},
        "scope": Scope.CONNECTION_MANAGE,
    }


def _connection() -> Fields:
    return {
        **_words(
            "Connect to Outlook",
            "To read what customers wrote about claim C-77.",
            approve="Connect, read mail only",
            decline="Do not connect",
        ),
        **_rights([], ["Mail.Read"], "connect"),
        "body": {
            "service": "Outlook",
            "provider": "Microsoft",
            "skill": "outlook-mail",
            "auth_strategy": "device_code",
        },
    }


def _permission() -> Fields:
    return {
        **_words(
            "Let “Outlook — desk@meridian.test” send mail",
            "The letter to Maria cannot be sent with what it may do now.",
            approve="Let it send from now on",
            just_this_once="Let it send this one letter",
            decline="Keep it reading only",
        ),
        **_rights(["Mail.Read"], ["Mail.Read", "Mail.Send"], "widen"),
        "body": {"connection_name": "Outlook — desk@meridian.test", "reason": "Send one letter for claim C-77"},
    }


def _failure() -> Fields:
    options = [
        {"action": "retry_later", "label": "Try again in 10 minutes", "description": "Nothing is lost meanwhile."},
        {"action": "use_personal_account", "label": "Use another account"},
        {"action": "skip", "label": "Skip"},
    ]
    return {
        **_words(
            "Outlook does not answer",
            "Its health check failed twice.",
            decline="Skip, do without Outlook",
        ),
        "payload": {
            "failure_type": "service_unavailable",
            "service": "Outlook",
            "message": "Outlook is not responding.",
            "recovery_options": options,
        },
        "scope": Scope.SINGLE_STEP,
    }


EXAMPLES: dict[CardKind, Callable[[], Fields]] = {
    CardKind.PLAN: _plan,
    CardKind.STANDING: _standing,
    CardKind.GATE: _gate,
    CardKind.BATCH_REVIEW: batch,
    CardKind.DRAFT_REVIEW: _draft,
    CardKind.DECISION: _decision,
    CardKind.SUGGESTION: _suggestion,
    CardKind.AUTONOMY_THRESHOLD: _autonomy,
    CardKind.POST_EXECUTION: _post_execution,
    CardKind.SKILL_INSTALL: _skill,
    CardKind.BUDGET: _budget,
    CardKind.CONNECTION: _connection,
    CardKind.PERMISSION_ESCALATION: _permission,
    CardKind.CONNECTION_FAILURE: _failure,
}


def example(kind: CardKind, **fields: Any) -> Fields:
    """What `put` is given for a card of this kind."""
    return {"kind": kind, **EXAMPLES[kind](), **fields}


def make_kind(tenant: Any, kind: CardKind, **fields: Any) -> Card:
    with tenant_scope(tenant):
        return put(example(kind, **fields))
