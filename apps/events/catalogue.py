"""The catalogue of events: every type that a program can subscribe to, as a stream or as a webhook.

A type is stable. Fields are only added to its data; a change that could break a reader is a new type.
"""

from __future__ import annotations

from dataclasses import dataclass

from apps.tenants.enums import KeyScope


@dataclass(frozen=True)
class EventType:
    """`scope`: what a limited credential needs to receive it. `data`: each field of its data, described."""

    name: str
    description: str
    scope: KeyScope
    data: dict[str, str]
    version: int = 1


_SESSION = {"session": "Id of the conversation", "deployment": "Id of its chatbot"}
_CARD = {"card": "Id of the card", "kind": "Its kind", "risk": "Its risk"}
_TASK = {"run": "Id of the run", "task": "Id of the automation", "counts": "Ids and counts of the event, if any"}
_TYPES = (
    EventType("conversation.created", "Something was first said in a conversation.", KeyScope.SESSIONS_READ, _SESSION),
    EventType(
        "conversation.updated",
        "A conversation changed: who answers, its state, assignee, labels or what was said.",
        KeyScope.SESSIONS_READ,
        _SESSION,
    ),
    EventType(
        "message.created",
        "A visitor, the chatbot or a member of the team said something.",
        KeyScope.SESSIONS_READ,
        {
            **_SESSION,
            "seq": "Its number in the conversation",
            "sender": "`visitor`, `bot`, `human` or `system`",
            "text": "What was said; empty once the conversation was deleted",
        },
    ),
    EventType(
        "handover.requested",
        "A conversation waits for a person.",
        KeyScope.SESSIONS_READ,
        {**_SESSION, "queue": "The team that is asked for, if any"},
    ),
    EventType("handover.started", "A person answers instead of the chatbot.", KeyScope.SESSIONS_READ, _SESSION),
    EventType("handover.ended", "The chatbot answers again.", KeyScope.SESSIONS_READ, _SESSION),
    EventType(
        "rating.created",
        "A visitor rated a conversation, or changed the rating.",
        KeyScope.SESSIONS_READ,
        {**_SESSION, "score": "1 to 5", "scale": "`stars` or `thumbs`"},
    ),
    EventType(
        "sla.missed",
        "The team missed the target of an SLA policy in a conversation; once for each run of a clock.",
        KeyScope.SESSIONS_READ,
        {
            **_SESSION,
            "target": "`first_reply`, `next_reply` or `resolution`",
            "policy": "Id of the policy",
            "due_at": "When it was due",
        },
    ),
    EventType(
        "card.created",
        "An action waits for approval.",
        KeyScope.CARDS_READ,
        {**_CARD, "state": "`open`"},
    ),
    EventType("card.assigned", "A card was given to a member.", KeyScope.CARDS_READ, {**_CARD, "state": "`assigned`"}),
    EventType(
        "card.settled",
        "A card was approved, declined, withdrawn or expired.",
        KeyScope.CARDS_READ,
        {**_CARD, "state": "`decided`, `expired` or `withdrawn`"},
    ),
    EventType(
        "work.updated",
        "A task, project or goal has another status.",
        KeyScope.WORK_READ,
        {"work_item": "Its id", "type": "`task`, `project` or `goal`", "status": "Its status now"},
    ),
    EventType(
        "knowledge.document_stored",
        "A document was added, or its text changed.",
        KeyScope.KNOWLEDGE_READ,
        {"document": "Its id", "collection": "Id of its collection"},
    ),
    EventType("task.scheduled", "A run of an automation was queued.", KeyScope.AUTOMATIONS_READ, _TASK),
    EventType("task.started", "A run began.", KeyScope.AUTOMATIONS_READ, _TASK),
    EventType("task.completed", "A run ended with its results.", KeyScope.AUTOMATIONS_READ, _TASK),
    EventType("task.failed", "A run failed.", KeyScope.AUTOMATIONS_READ, _TASK),
    EventType("task.halted", "A run was stopped.", KeyScope.AUTOMATIONS_READ, _TASK),
    EventType(
        "task.result",
        "A run of an automation that reports to webhooks has results.",
        KeyScope.AUTOMATIONS_READ,
        {**_TASK, "counts": "How many `findings`, `proposals` and failures (`failed`)"},
    ),
    EventType("task.dead_letter", "An automation failed too often and was paused.", KeyScope.AUTOMATIONS_READ, _TASK),
    EventType("task.budget_warning", "A run has used most of its budget.", KeyScope.AUTOMATIONS_READ, _TASK),
    EventType("task.budget_exceeded", "A run was ended by its budget.", KeyScope.AUTOMATIONS_READ, _TASK),
)
CATALOGUE = {each.name: each for each in _TYPES}
MESSAGE_CREATED = "message.created"
