"""The words of the execution safety loop. Values are the wire's own (contract safety-loop 7-17)."""

from django.db.models import TextChoices


class Tier(TextChoices):
    """How grave an intended action is, from the lightest to the gravest."""

    ADVISORY = "advisory", "May go on"
    CONFIRM = "confirm", "A person has to confirm"
    VERIFY = "verify", "A person has to verify with a code"
    DANGER_ZONE = "danger_zone", "Stops the agent"


class Tolerance(TextChoices):
    CONSERVATIVE = "conservative", "Conservative"
    MODERATE = "moderate", "Moderate"
    AGGRESSIVE = "aggressive", "Aggressive"


class Mode(TextChoices):
    ENFORCING = "enforcing", "Enforcing"
    MONITORING = "monitoring", "Monitoring: judges, and holds nobody"
    LOGGING = "logging", "Logging: writes down, and judges nothing"
    DISABLED = "disabled", "Disabled"


class StepOutcome(TextChoices):
    """What came of the step before."""

    SUCCESS = "success", "It worked"
    FAILURE = "failure", "It failed"
    SKIPPED = "skipped", "It was left out"


class Decision(TextChoices):
    GO = "go", "Went on"
    PAUSE = "pause", "Paused"
    STOP = "stop", "Stopped"


class Stage(TextChoices):
    """Which of the five stages decided; FAULT is none of them."""

    STEP_LIMIT = "step_limit", "Step limit"
    OUTCOME = "outcome", "Outcome of the step before"
    PATTERN = "pattern", "Patterns"
    TIER = "tier", "Risk of the action"
    TOLERANCE = "tolerance", "Risk tolerance"
    FAULT = "fault", "The evaluation itself failed"


class ExecutionStatus(TextChoices):
    RUNNING = "running", "Running"
    COMPLETED = "completed", "Completed"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class HoldKind(TextChoices):
    """What holds an agent. A pause ends with its execution; a block ends by a person alone."""

    CONFIRM = "confirm", "Waits for a yes"
    VERIFY = "verify", "Waits for a code"
    BLOCK = "block", "Blocked"


class HoldState(TextChoices):
    OPEN = "open", "Open"
    LIFTED = "lifted", "Lifted by a person"
    EXPIRED = "expired", "Nobody answered in time"
    CLOSED = "closed", "Its execution ended"


class OperatorAction(TextChoices):
    """What a person can do at the console about what holds an agent. Each lets it go on, there or by its own hand."""

    ALLOW = "allow", "Let it go on"
    CODE = "code", "Show the code"
    TOKEN = "token", "Make a token"


class ChallengeState(TextChoices):
    PENDING = "pending", "Waits for its code"
    VERIFIED = "verified", "The right code came"
    FAILED = "failed", "A wrong code came"
    EXPIRED = "expired", "No code came in time"
    SUPERSEDED = "superseded", "Another one took its place"


class Endpoint(TextChoices):
    CREATE = "create", "Create"
    READ = "read", "Read"
    EXECUTE = "execute", "Execute"
