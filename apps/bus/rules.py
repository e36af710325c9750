"""What becomes of a message whose delivery failed? Pure."""

from apps.bus.enums import State

# A delivery that is refused (nack) and one whose lease runs out both count (issue B's reading of contract silas 15).
MAX_ATTEMPTS = 5
_LONGEST_WAIT_SECONDS = 60


def state_after_failure(attempts: int) -> State:
    """`attempts` counts the failed deliveries, this one included."""
    return State.DEAD if attempts >= MAX_ATTEMPTS else State.QUEUED


def wait_after_failure(attempts: int) -> int:
    """Seconds before the next delivery: 1, 2, 4, 8, at most a minute. The scope waits too, so order holds."""
    return min(1 << (attempts - 1), _LONGEST_WAIT_SECONDS)
