"""The words of the execution safety loop. Values are the wire's own (contract safety-loop 7-17)."""

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class Tier(TextChoices):
    """How grave an intended action is, from the lightest to the gravest."""

    ADVISORY = "advisory", _("May go on")
    CONFIRM = "confirm", _("A person has to confirm")
    VERIFY = "verify", _("A person has to verify with a code")
    DANGER_ZONE = "danger_zone", _("Stops the agent")


class Tolerance(TextChoices):
    CONSERVATIVE = "conservative", _("Conservative")
    MODERATE = "moderate", _("Moderate")
    AGGRESSIVE = "aggressive", _("Aggressive")


class Mode(TextChoices):
    ENFORCING = "enforcing", _("Enforcing")
    MONITORING = "monitoring", _("Monitoring: judges, and holds nobody")
    LOGGING = "logging", _("Logging: writes down, and judges nothing")
    DISABLED = "disabled", _("Disabled")


class StepOutcome(TextChoices):
    """What came of the step before."""

    SUCCESS = "success", _("It worked")
    FAILURE = "failure", _("It failed")
    SKIPPED = "skipped", _("It was left out")


class Decision(TextChoices):
    GO = "go", _("Went on")
    PAUSE = "pause", _("Paused")
    STOP = "stop", _("Stopped")


class Stage(TextChoices):
    """Which of the five stages decided; FAULT is none of them."""

    STEP_LIMIT = "step_limit", _("Step limit")
    OUTCOME = "outcome", _("Outcome of the step before")
    PATTERN = "pattern", _("Patterns")
    TIER = "tier", _("Risk of the action")
    TOLERANCE = "tolerance", _("Risk tolerance")
    FAULT = "fault", _("The evaluation itself failed")


class ExecutionStatus(TextChoices):
    RUNNING = "running", _("Running")
    COMPLETED = "completed", _("Completed")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")


class HoldKind(TextChoices):
    """What holds an agent. A pause ends with its execution; a block ends by a person alone."""

    CONFIRM = "confirm", _("Waits for a yes")
    VERIFY = "verify", _("Waits for a code")
    BLOCK = "block", _("Blocked")


class HoldState(TextChoices):
    OPEN = "open", _("Open")
    LIFTED = "lifted", _("Lifted by a person")
    EXPIRED = "expired", _("Nobody answered in time")
    CLOSED = "closed", _("Its execution ended")


class OperatorAction(TextChoices):
    """What a person can do at the console about what holds an agent. Each lets it go on, there or by its own hand."""

    ALLOW = "allow", _("Let it go on")
    CODE = "code", _("Show the code")
    TOKEN = "token", _("Make a token")


class ChallengeState(TextChoices):
    PENDING = "pending", _("Waits for its code")
    VERIFIED = "verified", _("The right code came")
    FAILED = "failed", _("A wrong code came")
    EXPIRED = "expired", _("No code came in time")
    SUPERSEDED = "superseded", _("Another one took its place")


class Endpoint(TextChoices):
    CREATE = "create", _("Create")
    READ = "read", _("Read")
    EXECUTE = "execute", _("Execute")
