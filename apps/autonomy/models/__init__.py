"""Everything that this room stores."""

from apps.autonomy.models.findings import Artifact, ContextProposal, Finding, MemoryProposal, OpenQuestion, Precedent
from apps.autonomy.models.outbox import Notification, Outbox, Webhook
from apps.autonomy.models.sessions import AutonomousSession, Checkpoint
from apps.autonomy.models.settings import AutonomySettings, MemberOptIn
from apps.autonomy.models.tasks import Occurrence, Task, Trigger, _silent

__all__ = [
    "Artifact",
    "AutonomousSession",
    "AutonomySettings",
    "Checkpoint",
    "ContextProposal",
    "Finding",
    "MemberOptIn",
    "MemoryProposal",
    "Notification",
    "Occurrence",
    "OpenQuestion",
    "Outbox",
    "Precedent",
    "Task",
    "Trigger",
    "Webhook",
    "_silent",  # migration 0001 names it here
]
