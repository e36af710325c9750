"""The words of the execution safety loop. Values are the wire's own (contract safety-loop 7-17)."""

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class Tier(TextChoices):
    """How grave an intended action is, from the lightest to the gravest."""

    ADVISORY = "advisory", _("May continue")
    CONFIRM = "confirm", _("Requires confirmation by a person")
    VERIFY = "verify", _("Requires a code from a person")
    DANGER_ZONE = "danger_zone", _("Stops the agent")


class Tolerance(TextChoices):
    CONSERVATIVE = "conservative", _("Conservative")
    MODERATE = "moderate", _("Moderate")
    AGGRESSIVE = "aggressive", _("Aggressive")


class Mode(TextChoices):
    ENFORCING = "enforcing", _("Enforcing")
    MONITORING = "monitoring", _("Monitoring: evaluates but doesn't hold agents")
    LOGGING = "logging", _("Logging: records without evaluating")
    DISABLED = "disabled", _("Disabled")


class StepOutcome(TextChoices):
    """What came of the step before."""

    SUCCESS = "success", _("It worked")
    FAILURE = "failure", _("It failed")
    SKIPPED = "skipped", _("It was skipped")


class Decision(TextChoices):
    GO = "go", _("Continued")
    PAUSE = "pause", _("Paused")
    STOP = "stop", _("Stopped")


class Stage(TextChoices):
    """Which of the five stages decided; FAULT is none of them."""

    STEP_LIMIT = "step_limit", _("Step limit")
    OUTCOME = "outcome", _("Outcome of the previous step")
    PATTERN = "pattern", _("Patterns")
    TIER = "tier", _("Risk of the action")
    TOLERANCE = "tolerance", _("Risk tolerance")
    FAULT = "fault", _("The evaluation failed")


class ExecutionStatus(TextChoices):
    RUNNING = "running", _("Running")
    COMPLETED = "completed", _("Completed")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")


class HoldKind(TextChoices):
    """What holds an agent. A pause ends with its execution; a block ends by a person alone."""

    CONFIRM = "confirm", _("Waiting for approval")
    VERIFY = "verify", _("Waiting for a code")
    BLOCK = "block", _("Blocked")


class HoldState(TextChoices):
    OPEN = "open", _("Open")
    LIFTED = "lifted", _("Released by a person")
    EXPIRED = "expired", _("Expired without an answer")
    CLOSED = "closed", _("Its run ended")


class OperatorAction(TextChoices):
    """What a person can do at the console about what holds an agent. Each lets it go on, there or by its own hand."""

    ALLOW = "allow", _("Allow it to continue")
    CODE = "code", _("Show the code")
    TOKEN = "token", _("Create a token")


class ChallengeState(TextChoices):
    PENDING = "pending", _("Waiting for its code")
    VERIFIED = "verified", _("Verified")
    FAILED = "failed", _("Wrong code entered")
    EXPIRED = "expired", _("Expired")
    SUPERSEDED = "superseded", _("Replaced by a newer one")


class Endpoint(TextChoices):
    CREATE = "create", _("Create")
    READ = "read", _("Read")
    EXECUTE = "execute", _("Execute")
