"""How does an audit entry read in plain language? Pure; the names that belong to its ids are looked up before.

An event without a sentence here is told by its label in the closed list, so that nothing that happened is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.audit.enums import AuditEvent
from apps.work.enums import WorkReason


@dataclass(frozen=True)
class Names:
    """What people call the ids of a page of entries, by `kind:id`."""

    known: Mapping[str, str] = field(default_factory=dict)

    def of(self, word: str) -> str:
        kind, _, given = word.partition(":")
        if kind == "record":
            return given.replace("/", " ")
        return self.known.get(word) or _UNNAMED.get(kind, "something")


@dataclass(frozen=True)
class Story:
    """One line of the activity: a mark (ok, bad, ask or none), what happened in bold, and the rest."""

    mark: str
    lead: str
    rest: str = ""


_UNNAMED = {
    "": "The platform",
    "system": "The platform",
    "seed_demo": "The demo set-up",
    "command": "An administrator",
    "user": "Somebody",
    "visitor": "A visitor",
    "bot": "The bot",
    "card": "a card",
    "session": "a conversation",
    "work": "a piece of work",
    "run": "a run",
    "gate": "a gate",
    "token": "an approval",
    "message": "a message",
    "deployment": "a deployment",
    "api_key": "an API key",
    "document": "a document",
    "collection": "a collection",
    "skill": "a skill",
}

# Per event the field of `data` that decides which sentence fits; `event:value` below, or plain `event` for the others.
_VARIANT = {
    "card_decided": "verdict",
    "identity_throttled": "by",
    "work_moved": "status",
    "tool_call": "outcome",
    "run_closed": "status",
}

# mark, bold, rest; {who} is the actor, {what} the subject, anything else a field of `data`.
_SENTENCES: dict[str, tuple[str, str, str]] = {
    "staff_logged_in": ("", "{who} logged in", "as {role}"),
    "member_added": ("", "{who} added {what}", "as {role}"),
    "role_changed": ("", "{who} changed a role", "{what} is now {role}"),
    "deployment_created": ("", "{who} created a deployment", "{what}"),
    "deployment_changed": ("", "{who} changed a deployment", "{what}: {fields}"),
    "api_key_created": ("", "{who} made an API key", "{what}"),
    "api_key_revoked": ("", "{who} revoked an API key", "{what}"),
    "admin_changed": ("", "{who} changed settings", "({model} {change})"),
    "card_opened": ("ask", "Asked you to decide", "{what}"),
    "card_decided:approved": ("ok", "{who} approved", "{what}"),
    "card_decided:declined": ("", "{who} declined", "{what}; nothing was changed"),
    "card_decided": ("", "{who} answered", "{what}"),
    "card_expired": ("bad", "Nobody decided in time", "{what}; nothing was changed"),
    "approval_token_issued": ("", "{who} signed an approval", "for {what}"),
    "approval_verified": ("", "Used an approval", "for exactly what was approved"),
    "approval_refused": ("bad", "Refused an approval", "because of {reason}"),
    "session_started": ("", "A conversation began", "with {what}"),
    "message_accepted": ("", "Got a message", "from {what}"),
    "turn_completed": ("ok", "Answered", "{what}"),
    "turn_suppressed": ("", "Held back an answer", "to {what}, because a person had taken over"),
    "turn_failed": ("bad", "Could not answer", "{what}; a person was asked for"),
    "model_fell_back": ("bad", "The model failed", "in the conversation with {what}, and the built-in one answered"),
    "memory_ops_dropped": ("", "Ignored a wish to remember", "in the conversation with {what}"),
    "identity_failed": ("bad", "Could not confirm who it is", "{what} stays where they were"),
    "identity_throttled": ("bad", "Stopped checking who it is", "{what} tried too often; a person was asked for"),
    "identity_throttled:unavailable": ("bad", "Could not check who it is", "{what} was asked to try again later"),
    "level_raised": ("ok", "Confirmed who it is", "{what} is now {level}"),
    "level_expired": ("", "Confirmation ran out", "{what} is public again"),
    "taken_over": ("", "{who} took over", "the conversation with {what}"),
    "handed_back": ("", "{who} handed back", "the conversation with {what}"),
    "person_wanted": ("ask", "A person is wanted", "by {what}"),
    "staff_replied": ("", "{who} replied", "to {what}"),
    "message_dead": ("bad", "Gave up on a message", "after several attempts"),
    "gate_saved": ("", "Policy changed", "gate {name}"),
    "gate_blocked": ("bad", "Policy said no", "in {what} (gate {gate})"),
    "gate_asked": ("", "Policy asked for a person", "in {what} (gate {gate})"),
    "run_started": ("", "Opened a guarded run", "for {what}"),
    "run_closed": ("", "Closed a guarded run", "of {what}"),
    "run_closed:failed": ("bad", "A guarded run failed", "of {what}: {reason}"),
    "tool_call:started": ("", "Began {tool}", "for {what}"),
    "tool_call:success": ("ok", "Ran {tool}", "for {what}"),
    "tool_call": ("bad", "Did not run {tool}", "for {what}: {outcome}"),
    "halt_requested": ("", "{who} asked to stop", "{what}"),
    "halted": ("bad", "Stopped", "{what}: {reason}"),
    "cost_cap_reached": ("bad", "Stopped before spending more", "in {what}: {reason}"),
    "budget_reached": ("bad", "Stopped at a limit", "in {what}: {reason}"),
    "skill_installed": ("", "A skill was installed", "{what}"),
    "record_changed": ("ok", "Changed a record", "as approved: {what}"),
    "document_stored": ("", "Read a document", "{what}"),
    "document_forgotten": ("", "{who} removed a document", ""),
    "collection_opened": ("", "Opened a collection of documents", "{what}"),
    "collection_changed": ("", "{who} changed a collection of documents", "{what}"),
    "work_proposed": ("", "Prepared", "{what}"),
    "work_refused": ("bad", "Refused a plan", "in the conversation with {what}: {code}"),
    "work_moved:done": ("ok", "Done and proved", "{what}"),
    "work_moved:healthy": ("ok", "A goal is in place", "{what}"),
    "work_moved:running": ("", "Started", "{what}"),
    "work_moved:blocked": ("", "Did not run", "{what}: {reason}"),
    "work_moved:stuck": ("bad", "Could not prove", "{what}: {reason}"),
    "work_moved:failed": ("bad", "Failed", "{what}: {reason}"),
    "work_moved": ("", "Moved on", "{what} is now {status}"),
    "work_attempted": ("", "Tried", "{what}"),
    "execution_blocked_no_approval": ("bad", "Did not start", "{what}, because the approval did not hold: {reason}"),
}

_REASONS: dict[str, str] = {
    **{code: str(label) for code, label in WorkReason.choices},
    "": "no reason was given",
    "cost_cap_reached": "the next call would have cost more than is left",
    "global_daily": "the day's limit is reached",
    "global_monthly": "the month's limit is reached",
    "external_halt": "a person asked for it",
    "tool_not_granted": "it is not allowed here",
    "approval_required": "it needs a person's approval",
    "approval_missing": "nobody has approved exactly this",
    "approval_spent": "it was carried out before and is not done twice",
}
_CODES = ("reason", "outcome", "status", "code")

GROUPS: dict[str, frozenset[str]] = {
    "decisions": frozenset(
        {
            "card_opened",
            "card_decided",
            "card_expired",
            "approval_token_issued",
            "approval_verified",
            "approval_refused",
        }
    ),
    "conversations": frozenset(
        {
            "session_started",
            "turn_completed",
            "turn_suppressed",
            "turn_failed",
            "model_fell_back",
            "identity_failed",
            "identity_throttled",
            "level_raised",
            "level_expired",
            "taken_over",
            "handed_back",
            "person_wanted",
            "staff_replied",
            "message_dead",
        }
    ),
    "work": frozenset(
        {
            "work_proposed",
            "work_refused",
            "record_changed",
            "work_moved",
            "work_attempted",
            "execution_blocked_no_approval",
            "tool_call",
        }
    ),
    "policy": frozenset(
        {
            "admin_changed",
            "member_added",
            "role_changed",
            "deployment_created",
            "deployment_changed",
            "api_key_created",
            "api_key_revoked",
            "gate_saved",
            "gate_blocked",
            "gate_asked",
            "halt_requested",
            "halted",
            "cost_cap_reached",
            "budget_reached",
        }
    ),
}
# What somebody who was away wants to know first: what was asked, decided, done, changed hands or went wrong.
HIGHLIGHTS = frozenset(
    {
        "card_opened",
        "card_decided",
        "card_expired",
        "approval_refused",
        "turn_completed",
        "turn_failed",
        "model_fell_back",
        "identity_failed",
        "identity_throttled",
        "level_raised",
        "taken_over",
        "handed_back",
        "person_wanted",
        "staff_replied",
        "message_dead",
        "gate_saved",
        "admin_changed",
        "member_added",
        "role_changed",
        "deployment_changed",
        "api_key_created",
        "api_key_revoked",
        "document_forgotten",
        "skill_installed",
        "halted",
        "cost_cap_reached",
        "staff_logged_in",
        "work_moved",
        "work_refused",
        "execution_blocked_no_approval",
    }
)


class _Words(dict[str, str]):
    """Fields of a sentence; one that an old entry does not have reads as three dots."""

    def __missing__(self, key: str) -> str:
        return "…"


def tell(event: str, *, actor: str, subject: str, data: Mapping[str, Any], names: Names) -> Story:
    """The entry as a sentence; `names` has what the ids of its page are called."""
    variant = f"{event}:{data.get(_VARIANT.get(event, ''), '')}"
    mark, lead, rest = _SENTENCES.get(variant) or _SENTENCES.get(event) or ("", _label(event), "")
    words = _Words({name: _plain(name, value) for name, value in data.items()})
    words.update(
        who=names.of(actor), what=names.of(subject), tool=names.known.get(f"tool:{subject}:{data.get('seq')}", "a tool")
    )
    return Story(mark, lead.format_map(words), rest.format_map(words))


def _label(event: str) -> str:
    return str(AuditEvent(event).label) if event in AuditEvent.values else event.replace("_", " ")


def _plain(name: str, value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if name in _CODES:
        return _REASONS.get(text, text.replace("_", " "))
    return text
