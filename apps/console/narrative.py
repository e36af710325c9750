"""How does an audit entry read in plain language? Pure; the names that belong to its ids are looked up before.

An event without a sentence here is told by its label in the closed list, so that nothing that happened is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.audit.enums import AuditEvent as E


@dataclass(frozen=True)
class Names:
    """What people call the ids of a page of entries, by `kind:id`."""

    known: Mapping[str, str] = field(default_factory=dict)

    def of(self, word: str) -> str:
        kind = word.split(":", 1)[0]
        return self.known.get(word) or _UNNAMED.get(kind, "something")


@dataclass(frozen=True)
class Story:
    """One line of the activity: a mark (ok, bad, ask or none), what happened in bold, and the rest."""

    mark: str
    lead: str
    rest: str = ""


_UNNAMED = {
    "": "the platform",
    "system": "The platform",
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
}

# Per event the field of `data` that decides which sentence fits; `event:value` below, or plain `event` for the others.
_VARIANT = {
    E.CARD_DECIDED: "verdict",
    "work_moved": "status",
    E.TOOL_CALL: "outcome",
    E.RUN_CLOSED: "status",
}

# mark, bold, rest; {who} is the actor, {what} the subject, anything else a field of `data`.
_SENTENCES: dict[str, tuple[str, str, str]] = {
    E.STAFF_LOGGED_IN: ("", "{who} logged in", "as {role}"),
    E.CARD_OPENED: ("ask", "Asked you to decide", "{what}"),
    f"{E.CARD_DECIDED}:approved": ("ok", "{who} approved", "{what}"),
    f"{E.CARD_DECIDED}:declined": ("", "{who} declined", "{what}; nothing was changed"),
    E.CARD_DECIDED: ("", "{who} answered", "{what}"),
    E.CARD_EXPIRED: ("bad", "Nobody decided in time", "{what}; nothing was changed"),
    E.APPROVAL_TOKEN_ISSUED: ("", "{who} signed an approval", "for {what}"),
    E.APPROVAL_VERIFIED: ("", "Used an approval", "for exactly what was approved"),
    E.APPROVAL_REFUSED: ("bad", "Refused an approval", "because of {reason}"),
    E.SESSION_STARTED: ("", "A conversation began", "with {what}"),
    E.MESSAGE_ACCEPTED: ("", "{what}", "wrote a message"),
    E.TURN_COMPLETED: ("ok", "Answered", "{what}"),
    E.TURN_SUPPRESSED: ("", "Held back an answer", "to {what}, because a person had taken over"),
    E.TURN_FAILED: ("bad", "Could not answer", "{what}; a person was asked for"),
    E.MODEL_FELL_BACK: ("bad", "The model failed", "in the conversation with {what}, and the built-in one answered"),
    E.MEMORY_OPS_DROPPED: ("", "Ignored a wish to remember", "in the conversation with {what}"),
    E.INPUT_BLOCKED: ("bad", "Turned away a message", "of {what}"),
    E.OUTPUT_BLOCKED: ("bad", "Held back an answer", "to {what}, because policy did not allow it"),
    E.IDENTITY_FAILED: ("bad", "Could not confirm who it is", "{what} stays where they were"),
    E.LEVEL_RAISED: ("ok", "Confirmed who it is", "{what} is now {level}"),
    E.LEVEL_EXPIRED: ("", "Confirmation ran out", "{what} is public again"),
    E.TAKEN_OVER: ("", "{who} took over", "the conversation with {what}"),
    E.HANDED_BACK: ("", "{who} handed back", "the conversation with {what}"),
    E.PERSON_WANTED: ("ask", "A person is wanted", "by {what}"),
    E.STAFF_REPLIED: ("", "{who} replied", "to {what}"),
    E.MESSAGE_DEAD: ("bad", "Gave up on a message", "after several attempts"),
    E.GATE_SAVED: ("", "Policy changed", "gate {name}"),
    E.GATE_BLOCKED: ("bad", "Policy said no", "in {what}"),
    E.GATE_ASKED: ("", "Policy asked for a person", "in {what}"),
    E.RUN_STARTED: ("", "Opened a guarded run", "for {what}"),
    E.RUN_CLOSED: ("", "Closed a guarded run", "of {what}"),
    f"{E.RUN_CLOSED}:failed": ("bad", "A guarded run failed", "of {what}: {reason}"),
    f"{E.TOOL_CALL}:started": ("", "Began {tool}", "for {what}"),
    f"{E.TOOL_CALL}:success": ("ok", "Ran {tool}", "for {what}"),
    E.TOOL_CALL: ("bad", "Did not run {tool}", "for {what}: {outcome}"),
    E.HALT_REQUESTED: ("", "{who} asked to stop", "{what}"),
    E.HALTED: ("bad", "Stopped", "{what}: {reason}"),
    E.COST_CAP_REACHED: ("bad", "Stopped before spending more", "in {what}: {reason}"),
    E.BUDGET_REACHED: ("bad", "Stopped at a limit", "in {what}: {reason}"),
    "work_proposed": ("", "Prepared", "{what}"),
    "work_moved:done": ("ok", "Done and proved", "{what}"),
    "work_moved:running": ("", "Started", "{what}"),
    "work_moved:blocked": ("", "Did not run", "{what}: {reason}"),
    "work_moved:stuck": ("bad", "Could not prove", "{what}: {reason}"),
    "work_moved:failed": ("bad", "Failed", "{what}: {reason}"),
    "work_moved": ("", "Moved on", "{what} is now {status}"),
    "work_attempted": ("", "Tried", "{what}"),
    "work_not_approved": ("bad", "Did not start", "{what}, because the approval did not hold: {reason}"),
}

_REASONS = {
    "": "no reason was given",
    "approval_denied": "a person said no",
    "approval_expired": "nobody decided in time",
    "execution_blocked_no_approval": "the approval did not hold",
    "verification_failed": "the outside checks did not pass",
    "effect_uncertain": "it cannot be known whether it took effect",
    "cost_cap_reached": "the next call would have cost more than is left",
    "global_daily": "the day's limit is reached",
    "global_monthly": "the month's limit is reached",
    "external_halt": "a person asked for it",
    "tool_not_granted": "it is not allowed here",
    "gate_blocked": "policy does not allow it",
    "approval_required": "it needs a person's approval",
    "approval_missing": "nobody has approved exactly this",
    "approval_spent": "it was carried out before and is not done twice",
}
_CODES = ("reason", "outcome", "status")

GROUPS: dict[str, frozenset[str]] = {
    "decisions": frozenset(
        {E.CARD_OPENED, E.CARD_DECIDED, E.CARD_EXPIRED, E.APPROVAL_TOKEN_ISSUED, E.APPROVAL_VERIFIED, E.APPROVAL_REFUSED}
    ),
    "conversations": frozenset(
        {
            E.SESSION_STARTED,
            E.TURN_COMPLETED,
            E.TURN_SUPPRESSED,
            E.TURN_FAILED,
            E.MODEL_FELL_BACK,
            E.INPUT_BLOCKED,
            E.OUTPUT_BLOCKED,
            E.IDENTITY_FAILED,
            E.LEVEL_RAISED,
            E.LEVEL_EXPIRED,
            E.TAKEN_OVER,
            E.HANDED_BACK,
            E.PERSON_WANTED,
            E.STAFF_REPLIED,
            E.MESSAGE_DEAD,
        }
    ),
    "work": frozenset({"work_proposed", "work_moved", "work_attempted", "work_not_approved", E.TOOL_CALL}),
    "policy": frozenset(
        {E.GATE_SAVED, E.GATE_BLOCKED, E.GATE_ASKED, E.HALT_REQUESTED, E.HALTED, E.COST_CAP_REACHED, E.BUDGET_REACHED}
    ),
}
# What somebody who was away wants to know first: what was asked, decided, done, changed hands or went wrong.
HIGHLIGHTS = frozenset(
    {
        E.CARD_OPENED,
        E.CARD_DECIDED,
        E.CARD_EXPIRED,
        E.APPROVAL_REFUSED,
        E.TURN_COMPLETED,
        E.TURN_FAILED,
        E.MODEL_FELL_BACK,
        E.INPUT_BLOCKED,
        E.OUTPUT_BLOCKED,
        E.IDENTITY_FAILED,
        E.LEVEL_RAISED,
        E.TAKEN_OVER,
        E.HANDED_BACK,
        E.PERSON_WANTED,
        E.STAFF_REPLIED,
        E.MESSAGE_DEAD,
        E.GATE_SAVED,
        E.HALTED,
        E.COST_CAP_REACHED,
        E.STAFF_LOGGED_IN,
        "work_moved",
        "work_not_approved",
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
    words.update(who=names.of(actor), what=names.of(subject), tool=names.known.get(f"tool:{subject}:{data.get('seq')}", "a tool"))
    return Story(mark, _capital(lead.format_map(words)), rest.format_map(words))


def _label(event: str) -> str:
    return str(E(event).label) if event in E.values else event.replace("_", " ")


def _plain(name: str, value: Any) -> str:
    text = str(value)
    if name in _CODES:
        return _REASONS.get(text, text.replace("_", " "))
    return text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
