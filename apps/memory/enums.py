"""Scopes, tiers, trust and sources of memories (contract silas 2 and 10). The kernel defines `MemoryType`."""

from __future__ import annotations

from enum import StrEnum

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class ScopeKind(TextChoices):
    """Whose memory it is. An unverified visitor has only the memory of their conversation."""

    CONVERSATION = "conversation", _("A conversation")
    CUSTOMER = "customer", _("A verified customer")
    TENANT = "tenant", _("The company")


class Tier(TextChoices):
    """`low_reingestion` is the raw lane: kept, and found by an explicit query only (spec 6.1)."""

    ACTIVE = "active", _("Remembered")
    LOW_REINGESTION = "low_reingestion", _("Kept as said")


class Trust(TextChoices):
    WORKING = "working", _("Not confirmed")
    VERIFIED = "verified", _("Confirmed")
    CONSTITUTIONAL = "constitutional", _("Never changes")


class DeletionReason(TextChoices):
    """Why a member deleted a memory. No text of their own: the audit log keeps it forever."""

    WRONG = "wrong", _("It is wrong")
    OUTDATED = "outdated", _("It is outdated")
    REQUESTED = "requested", _("The customer asked for it")
    SENSITIVE = "sensitive", _("It is private or confidential")


class EntityKind(TextChoices):
    PERSON = "person", _("A person")
    REFERENCE = "reference", _("A number, such as an order's")
    THING = "thing", _("A thing")
    EVENT = "event", _("Something that happened")


class Predicate(TextChoices):
    """What a relation says of its subject. Of the first five one is true at a time: a later one ends the former."""

    IS = "is", _("is")
    CALLED = "called", _("is called")
    LIVES_IN = "lives_in", _("lives in")
    WORKS_AT = "works_at", _("works at")
    PREFERS = "prefers", _("prefers")
    HAS = "has", _("has")
    CAUSED_BY = "caused_by", _("was caused by")
    MENTIONED = "mentioned", _("is mentioned")


class Purpose(StrEnum):
    """What memories are recalled for; each has a budget (`facts.BUDGETS`). The last four are background runs."""

    TURN = "turn"
    PLANNING = "planning"
    WORKFLOW = "workflow"
    SCHEDULED = "scheduled"
    EVENT = "event"
    HEARTBEAT = "heartbeat"


class MergeReason(TextChoices):
    """Why one memory stands for another now."""

    DUPLICATE = "duplicate", _("Said the same thing")
    PROMOTED = "promoted", _("Was said again and again")
    CONTRADICTED = "contradicted", _("A person chose the other")


class ArchiveReason(TextChoices):
    """Why a memory is no longer recalled."""

    PROMOTED = "promoted", _("A promoted memory says the same")
    UNUSED = "unused", _("Not used for a long time")
    CONTRADICTED = "contradicted", _("A person chose another memory")
    STAFF = "staff", _("Archived by a teammate")


class QuestionKind(TextChoices):
    """What a person is asked about memories."""

    PROFILE = "profile", _("Whether it belongs to the profile")
    CONTRADICTION = "contradiction", _("Which of two is right")


class QuestionState(TextChoices):
    OPEN = "open", _("Waiting for an answer")
    ANSWERED = "answered", _("Answered")
    DISMISSED = "dismissed", _("Dismissed")


class SourceKind(TextChoices):
    """Where it came from (contract silas 10)."""

    CONVERSATION_RAW = "conversation_raw", _("A visitor's message")
    AGENT_RESPONSE_RAW = "agent_response_raw", _("An answer of the bot")
    STAFF_REPLY_RAW = "staff_reply_raw", _("A colleague's reply")
    RESEARCH_QUERY_RAW = "research_query_raw", _("A knowledge base search")
    TOOL_OUTPUT_RAW = "tool_output_raw", _("What a tool answered")
    MEMORY_OP = "memory_op", _("A memory proposed by a model")
    PROMOTION = "promotion", _("What was said repeatedly")
    KEPT_PROPOSAL = "kept_proposal", _("A proposal that a colleague kept")


# What a model wrote, and what was promoted from it without a person: a model may change it, and it decays.
OF_MODELS = (SourceKind.MEMORY_OP, SourceKind.PROMOTION)
