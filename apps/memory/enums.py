"""Scopes, tiers, trust and sources of memories (contract silas 2 and 10). The kernel defines `MemoryType`."""

from __future__ import annotations

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


class MergeReason(TextChoices):
    DUPLICATE = "duplicate", _("Said the same thing")


class SourceKind(TextChoices):
    """Where it came from (contract silas 10)."""

    CONVERSATION_RAW = "conversation_raw", _("A visitor's message")
    AGENT_RESPONSE_RAW = "agent_response_raw", _("An answer of the bot")
    STAFF_REPLY_RAW = "staff_reply_raw", _("A colleague's reply")
    RESEARCH_QUERY_RAW = "research_query_raw", _("A knowledge base search")
    TOOL_OUTPUT_RAW = "tool_output_raw", _("What a tool answered")
    MEMORY_OP = "memory_op", _("A memory proposed by a model")
    KEPT_PROPOSAL = "kept_proposal", _("A proposal that a colleague kept")
