"""The verbs of the work room. Sessions propose; staff adopt goals; receivers of cards authorize; workers run.

Everything here runs inside the caller's tenant scope; what is slow is in `apps.work.executor`.
"""

from apps.work.services.goals import adopt_goal, ask_for_standing
from apps.work.services.proposing import propose

__all__ = ["adopt_goal", "ask_for_standing", "propose"]
