"""Scopes, tiers, trust and sources of memories (contract silas 2 and 10). The kernel defines `MemoryType`."""

from __future__ import annotations

from django.db.models import TextChoices


class ScopeKind(TextChoices):
    """Whose memory it is. An unverified visitor has only the memory of their conversation."""

    CONVERSATION = "conversation", "A conversation"
    CUSTOMER = "customer", "A verified customer"
    TENANT = "tenant", "The company"


class Tier(TextChoices):
    """`low_reingestion` is the raw lane: kept, and found by an explicit query only (spec 6.1)."""

    ACTIVE = "active", "Remembered"
    LOW_REINGESTION = "low_reingestion", "Kept as said"


class Trust(TextChoices):
    WORKING = "working", "Not confirmed"
    VERIFIED = "verified", "Confirmed"
    CONSTITUTIONAL = "constitutional", "Never changes"


class SourceKind(TextChoices):
    """Where it came from (contract silas 10)."""

    CONVERSATION_RAW = "conversation_raw", "A visitor's message"
    AGENT_RESPONSE_RAW = "agent_response_raw", "An answer of the bot"
    STAFF_REPLY_RAW = "staff_reply_raw", "A colleague's reply"
    RESEARCH_QUERY_RAW = "research_query_raw", "A question to the documents"
    TOOL_OUTPUT_RAW = "tool_output_raw", "What a tool answered"
    MEMORY_OP = "memory_op", "A model's wish to remember"
    KEPT_PROPOSAL = "kept_proposal", "A proposal that a colleague kept"


class IntakeKind(TextChoices):
    """What was submitted."""

    FILE = "file", "File"
    TEXT = "text", "Text"
    WEBSITE = "website", "Website"
    PAGE = "page", "Page"
    AGAIN = "again", "Read again"


class IntakeState(TextChoices):
    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Being read"
    DONE = "done", "Read"
    FAILED = "failed", "Not read"
