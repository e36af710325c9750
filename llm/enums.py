"""Values that a model may use in its outputs (contract silas 2)."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    PROXY = "proxy"
    PLANNER = "planner"
    EXECUTOR = "executor"


class InteractionRegister(StrEnum):
    EXPLORATION = "exploration"
    EXECUTION = "execution"
    REVIEW = "review"
    STATUS = "status"


class InteractionMode(StrEnum):
    DEFAULT_AND_OFFER = "default_and_offer"
    ACT_AND_REPORT = "act_and_report"
    CONFIRM_ONLY_WHEN_REQUIRED = "confirm_only_when_required"


class PlanActionType(StrEnum):
    PROPOSE = "propose"
    REVISE = "revise"
    EXECUTE_NEXT = "execute_next"
    ABORT = "abort"


class MemoryOpType(StrEnum):
    STORE = "store"
    UPDATE = "update"
    DELETE = "delete"
    LINK = "link"


class MemoryQueryStrategy(StrEnum):
    SEMANTIC = "semantic"
    TEMPORAL = "temporal"
    SESSION = "session"
    KEYWORD = "keyword"
    ENTITY = "entity"
    CAUSAL = "causal"


class MemoryType(StrEnum):
    FACT = "fact"
    EPISODE = "episode"
    PREFERENCE = "preference"
    SKILL_NOTE = "skill_note"
    DECISION = "decision"
    FORESIGHT = "foresight"
    PROFILE = "profile"
