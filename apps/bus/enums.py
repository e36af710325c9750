"""Closed word lists of the bus (spec 19.2.1; contract silas 15)."""

from django.db.models import TextChoices


class Queue(TextChoices):
    PROXY = "proxy"
    PLANNER = "planner"
    EXECUTOR = "executor"
    RUNTIME = "runtime"


class Kind(TextChoices):
    """`execution_request` is ours: without it nothing dispatches an approved item (contract silas 15, gap)."""

    USER_MESSAGE = "user_message"
    PLAN_REQUEST = "plan_request"
    PLAN_RESULT = "plan_result"
    RESEARCH_REQUEST = "research_request"
    RESEARCH_RESULT = "research_result"
    EXECUTION_STATUS = "execution_status"
    CONSULT_PLANNER = "consult_planner"
    PLANNER_GUIDANCE = "planner_guidance"
    REPLAN_REQUEST = "replan_request"
    SYSTEM_EVENT = "system_event"
    EXECUTION_REQUEST = "execution_request"


class Sender(TextChoices):
    USER = "user"
    PROXY = "proxy"
    PLANNER = "planner"
    EXECUTOR = "executor"
    RUNTIME = "runtime"


class State(TextChoices):
    """queued → leased → acked, or back to queued, or dead. Acked and dead are final."""

    QUEUED = "queued"
    LEASED = "leased"
    ACKED = "acked"
    DEAD = "dead"


LIVE = (State.QUEUED, State.LEASED)
