"""Declare, for every table of a tenant, whether its rows are about one person the company talks to.

`EXPORTED` is handed to a person who asks for their data, `LEFT_OUT` is about a person and is not handed out, each for a
reason that the export states, and `NOT_PERSONAL` says nothing about one person, or can't be found by one. A table that
is in none of them, or in two, fails tests/architecture/test_personal_data.py, and so does one of a person of which
nothing says what an erasure does with it. Tables of rooms above this one are named, not imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kernel.language import gettext_lazy as _


class Link(Enum):
    """What a row is found by: `path` of its declaration leads to it."""

    CONTACT = "contact"
    SESSION = "session"
    CUSTOMER = "customer"
    SCOPE = "scope"
    WORK = "work"


@dataclass(frozen=True)
class Exported:
    """`fields` become the keys of each row in `<file>.json`. `moment`: the field that says when it was; of a
    conversation that several customers had one after the other, rows without one are not exported."""

    model: str
    file: str
    link: Link
    path: str
    fields: tuple[str, ...]
    moment: str = "created_at"


def _exported(model: str, file: str, link: Link, path: str, fields: str, moment: str = "created_at") -> Exported:
    return Exported(model, file, link, path, tuple(fields.split()), moment)


EXPORTED: tuple[Exported, ...] = (
    _exported("contacts.Contact", "contacts", Link.CONTACT, "pk", "id name attributes source created_at last_seen_at"),
    _exported(
        "contacts.ContactIdentity",
        "identities",
        Link.CONTACT,
        "contact_id",
        "contact_id kind value proved_by proved_at created_at",
    ),
    _exported(
        "contacts.ImportedConversation",
        "imported_conversations",
        Link.CONTACT,
        "contact_id",
        "id system external_id subject state messages started_at last_at",
        moment="imported_at",
    ),
    _exported(
        "silas_sessions.ChatSession",
        "conversations",
        Link.SESSION,
        "pk",
        "id deployment__title locale language channel created_at last_active_at attributes customer_name level",
        moment="",
    ),
    _exported(
        "silas_sessions.ChronicleEntry",
        "messages",
        Link.SESSION,
        "session_id",
        "session_id seq created_at kind sender text payload",
    ),
    _exported(
        "silas_sessions.VisitorCard",
        "forms_in_conversations",
        Link.SESSION,
        "session_id",
        "session_id kind payload status chosen answers created_at settled_at",
    ),
    _exported(
        "silas_sessions.FormAnswers", "forms_before_chat", Link.SESSION, "session_id", "session_id answers created_at"
    ),
    _exported(
        "silas_sessions.Consent",
        "consents",
        Link.SESSION,
        "session_id",
        "session_id version digest given_at",
        moment="given_at",
    ),
    _exported(
        "silas_sessions.VisitorFile",
        "files",
        Link.SESSION,
        "session_id",
        "id session_id sender name kind size digest created_at",
    ),
    _exported(
        "silas_sessions.TranscriptRequest",
        "transcripts",
        Link.SESSION,
        "session_id",
        "session_id address state asked_at settled_at",
        moment="asked_at",
    ),
    _exported(
        "silas_sessions.Rating",
        "ratings",
        Link.SESSION,
        "session_id",
        "session_id scale score comment created_at changed_at",
    ),
    _exported("silas_sessions.SessionLabel", "labels", Link.SESSION, "session_id", "session_id label__name", moment=""),
    _exported(
        "messengers.ChannelThread",
        "channel_addresses",
        Link.SESSION,
        "session_id",
        "session_id channel__kind peer peer_name proved_by follows_widget opted_out_at last_received_at created_at",
    ),
    _exported(
        "messengers.ChannelMessage",
        "channel_messages",
        Link.SESSION,
        "session_id",
        "session_id channel__kind direction state seq created_at changed_at",
    ),
    _exported(
        "memory.MemoryItem",
        "memories",
        Link.SCOPE,
        "scope",
        "content memory_type source_kind session_id created_at updated_at valid_until tags",
    ),
    _exported("memory.MemoryEntity", "remembered_names", Link.SCOPE, "scope", "kind name aliases created_at"),
    _exported(
        "knowledge.GapQuestion",
        "unanswered_questions",
        Link.SESSION,
        "session_id",
        "session_id text reason asked_at",
        moment="asked_at",
    ),
    _exported(
        "approvals.Card",
        "cards",
        Link.WORK,
        "subject_id",
        "id kind risk intent affected status session_id created_at settled_at",
    ),
    _exported(
        "work.WorkItem",
        "work",
        Link.WORK,
        "pk",
        "id type title subject status summary session_id created_at updated_at",
    ),
    _exported("skills.Record", "records", Link.CUSTOMER, "subject", "book key subject data updated_at", "updated_at"),
)


def kind_of(model: str) -> Exported:
    """The exported kind of this model, such as `work.WorkItem`."""
    return next(kind for kind in EXPORTED if kind.model == model)


_NOTES = _("Notes and drafts that your team wrote for itself. Decide in each case whether the law asks for them.")
_DERIVED = _("Working copies and indexes of what is exported elsewhere in this file.")
_PLANS = _("Plans, approvals and steps of work: internal records that may name other people.")
_SECRETS = _("Sealed values, and the state of identity checks.")
LEFT_OUT: dict[str, object] = {
    **dict.fromkeys(("contacts.ContactNote", "inbox.Mention", "silas_sessions.Note", "copilot.Assistance"), _NOTES),
    **dict.fromkeys(
        (
            "contacts.ContactMerge",
            "silas_sessions.Turn",
            "silas_sessions.DeskState",
            "inbox.SlaClock",
            "inbox.SlaMoment",
            "memory.MemoryVector",
            "memory.MemoryRelation",
            "memory.MemoryConsolidation",
            "memory.MemoryQuestion",
            "messengers.InboundMail",
            "messengers.ReadMail",
            "events.Event",
            "persona.PersonaEvent",
        ),
        _DERIVED,
    ),
    **dict.fromkeys(
        (
            "approvals.Decision",
            "approvals.Answer",
            "approvals.ApprovalToken",
            "approvals.GatePause",
            "approvals.CardQuestion",
            "work.Attempt",
            "work.VerificationRun",
            "work.Batch",
            "work.BatchItem",
            "work.UndoEntry",
            "work.Course",
            "work.LedgerEntry",
            "work.Artifact",
            "work.Planning",
            "work.ResearchRequest",
            "work.KnowledgeEffect",
            "guard.GuardedRun",
            "guard.ToolCall",
            "guard.SpendEntry",
            "guard.Budget",
        ),
        _PLANS,
    ),
    **dict.fromkeys(("bus.QueueMessage", "connections.PendingSecret"), _SECRETS),
    "contacts.Erasure": _("That an erasure was requested, and its receipt, which the person is given."),
}

# What an erasure keeps of `EXPORTED`, for a reason that its receipt states; `erasure.ERASERS` erase the others.
KEPT: dict[str, object] = {
    "silas_sessions.Consent": _("Proof that consent was given: version and time, without words of the person."),
    "approvals.Card": _("Approvals are signed over their content, which must stay for the signatures to be checked."),
    "work.WorkItem": _("Work that was approved: what was done in the person's name, as evidence and for undoing it."),
    "skills.Record": _(
        "Records of the business, such as orders: the company decides on them by the law they fall under."
    ),
}
KEPT_OF_CONVERSATIONS = _("That a message was written, when and by which side, without its words.")
KEPT_OF_LOG = _(
    "The audit log can't be changed. It holds ids, the customer ID among them, kinds and counts, and no words."
)
# Of `LEFT_OUT`: erased with the conversations, the memories or the contact that they belong to.
ERASED_ALONG = frozenset(
    {
        "contacts.ContactNote",
        "contacts.ContactMerge",
        "silas_sessions.Note",
        "inbox.Mention",
        "inbox.SlaMoment",
        "copilot.Assistance",
        "silas_sessions.Turn",
        "memory.MemoryVector",
        "memory.MemoryRelation",
        "memory.MemoryQuestion",
    }
)
# Of `LEFT_OUT`: kept as evidence, with the work and the approvals that they belong to.
PLANS_ARE_KEPT = frozenset(model for model, reason in LEFT_OUT.items() if reason is _PLANS)
# Of `LEFT_OUT`: no words of the person, or deleted by themselves after a time that retention sets.
HOLD_NO_WORDS = frozenset(
    {
        "silas_sessions.DeskState",
        "inbox.SlaClock",
        "memory.MemoryConsolidation",
        "messengers.InboundMail",
        "messengers.ReadMail",
        "events.Event",
        "persona.PersonaEvent",
        "bus.QueueMessage",
        "connections.PendingSecret",
        "contacts.Erasure",
    }
)

_NOT_PERSONAL = """
    approvals.AlertChoice approvals.ApprovalPolicy approvals.ApproverKey approvals.CardTiming approvals.ClientKey
    approvals.DecisionLink approvals.Look approvals.Passkey approvals.PasskeyChallenge approvals.PushSubscription
    approvals.TokenRevocation approvals.TokenUse
    autonomy.Artifact autonomy.AutonomousSession autonomy.AutonomySettings autonomy.Checkpoint
    autonomy.ContextProposal autonomy.Finding autonomy.FreedomProposal autonomy.InitiativeSettings
    autonomy.MemberOptIn autonomy.MemoryProposal autonomy.Notification autonomy.Occurrence autonomy.OpenQuestion
    autonomy.Outbox autonomy.Outcome autonomy.Precedent autonomy.Preference autonomy.Suggestion autonomy.Task
    autonomy.Trigger autonomy.Webhook
    bus.Processed
    connections.Connection connections.Credential connections.ItRequest connections.OnceGrant
    connections.SetupAnswer connections.SetupRun
    copilot.AssistanceSettings
    events.EventHead
    gates.Gate gates.GateVersion
    guard.ModelPrice guard.SpendingPolicy guard.SystemControl
    imports.ImportPart imports.ImportRun
    inbox.Availability inbox.InboxRule inbox.Macro inbox.ReadMark inbox.SavedView inbox.SlaPolicy inbox.Team
    inbox.TeamMember
    knowledge.ChunkVector knowledge.GapTopic knowledge.KnowledgeSource knowledge.SearchSettings
    memory.Chunk memory.Collection memory.Document memory.DocumentVersion memory.Intake memory.ReadPart
    messengers.AccountCode messengers.ApproverAccount messengers.CardNotice messengers.CardPolicy messengers.Channel
    persona.PersonaState
    releases.Release releases.ReleasePolicy
    safety.Challenge safety.Execution safety.FailedTries safety.Hold safety.PolicyVersion safety.SafetyAgent
    safety.Step safety.StepWindow
    silas_sessions.AccessLevel silas_sessions.CannedReply silas_sessions.FormQuestion silas_sessions.Label
    silas_sessions.MessageNonce silas_sessions.ProactiveMessage silas_sessions.VisitorOffers
    simulations.Scenario simulations.SimulationCopy simulations.SimulationResult simulations.SimulationRun
    simulations.SimulationSuite
    skills.DraftRevision skills.PackageKey skills.SkillDraft skills.SkillFile skills.SkillPackage
    skills.SkillVersion skills.TrustedPublisher
    tenants.ApiKey tenants.DataKey tenants.Deployment tenants.DeploymentPicture tenants.FirstRun
    tenants.IdempotentRequest tenants.IdentityKey tenants.Invitation tenants.LoginProvider tenants.Membership
    tenants.MessageKey tenants.OAuthApp
    tenants.OAuthGrant tenants.OAuthToken tenants.PolicySeal tenants.ProviderAccount tenants.Retention
    tenants.Sighting tenants.Visit tenants.VisitorLimits
    toolservers.OutsideTool toolservers.ToolServer toolservers.ToolSet toolservers.WebSearch
    work.GoalCycle work.PoolSlot work.ReviewPolicy work.ThresholdChange
"""
NOT_PERSONAL = frozenset(_NOT_PERSONAL.split())
