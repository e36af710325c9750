"""Rows of the work room: items and their attempts (`items`), batches and undo (`batches`), what changes while work runs
(`execution`), changes of documents (`knowledge`), and earned thresholds (`thresholds`)."""

from apps.work.models.batches import Batch, BatchItem, ReviewPolicy, UndoEntry
from apps.work.models.execution import Artifact, Course, LedgerEntry, Planning, PoolSlot, ResearchRequest
from apps.work.models.items import VISITOR, Attempt, GoalCycle, GoalFile, VerificationRun, WorkItem
from apps.work.models.knowledge import KnowledgeEffect
from apps.work.models.thresholds import ThresholdChange

__all__ = [
    "VISITOR",
    "Artifact",
    "Attempt",
    "Batch",
    "BatchItem",
    "Course",
    "GoalCycle",
    "GoalFile",
    "KnowledgeEffect",
    "LedgerEntry",
    "Planning",
    "PoolSlot",
    "ResearchRequest",
    "ReviewPolicy",
    "ThresholdChange",
    "UndoEntry",
    "VerificationRun",
    "WorkItem",
]
