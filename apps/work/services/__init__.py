"""The verbs of the work room. Sessions propose; staff adopt goals; receivers of cards authorize; workers run.

Everything here runs inside the caller's tenant scope; what is slow is in `apps.work.executor`.
"""

from apps.work.services.cancelling import cancel_for_staff, cancel_for_visitor, hold_for_visitor
from apps.work.services.cycles import resume as resume_goal
from apps.work.services.editing import amend, is_editable
from apps.work.services.fixing import propose_fix
from apps.work.services.goals import Installed, adopt_goal, ask_for_standing, check_goal, install_goal
from apps.work.services.proposing import propose, screen, take_in

__all__ = [
    "Installed",
    "adopt_goal",
    "amend",
    "ask_for_standing",
    "cancel_for_staff",
    "cancel_for_visitor",
    "check_goal",
    "hold_for_visitor",
    "install_goal",
    "is_editable",
    "propose",
    "propose_fix",
    "resume_goal",
    "screen",
    "take_in",
]
