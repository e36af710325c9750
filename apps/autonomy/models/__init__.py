"""Everything that this room stores."""

from apps.autonomy.models.findings import ContextProposal, Finding, MemoryProposal, OpenQuestion, Precedent
from apps.autonomy.models.outbox import Notification, Outbox, Webhook
from apps.autonomy.models.sessions import AutonomousSession, Checkpoint
from apps.autonomy.models.settings import AutonomySettings, MemberOptIn
from apps.autonomy.models.suggestions import FreedomProposal, InitiativeSettings, Outcome, Preference, Suggestion
from apps.autonomy.models.tasks import Occurrence, Task, Trigger, _silent

__all__ = [
    "AutonomousSession",
    "AutonomySettings",
    "Checkpoint",
    "ContextProposal",
    "Finding",
    "FreedomProposal",
    "InitiativeSettings",
    "MemberOptIn",
    "MemoryProposal",
    "Notification",
    "Occurrence",
    "OpenQuestion",
    "Outbox",
    "Outcome",
    "Precedent",
    "Preference",
    "Suggestion",
    "Task",
    "Trigger",
    "Webhook",
    "_silent",  # migration 0001 names it here
]
