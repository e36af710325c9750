"""Public services of the work room. Sessions propose; staff adopt goals; receivers of cards authorize; workers run.

Everything here runs inside the caller's tenant scope; what is slow is in `apps.work.executor`.
"""

from apps.work.services.cancellation import cancel_for_staff, cancel_for_visitor, lock_cancellable
from apps.work.services.edits import edit_plan, is_editable
from apps.work.services.fix_tasks import propose_fix
from apps.work.services.goal_cycles import resume_goal as resume_goal
from apps.work.services.goals import InstalledGoal, adopt_goal, check_goal, install_goal, request_standing_approval
from apps.work.services.proposals import accept_plan, propose, screen

__all__ = [
    "InstalledGoal",
    "accept_plan",
    "adopt_goal",
    "cancel_for_staff",
    "cancel_for_visitor",
    "check_goal",
    "edit_plan",
    "install_goal",
    "is_editable",
    "lock_cancellable",
    "propose",
    "propose_fix",
    "request_standing_approval",
    "resume_goal",
    "screen",
]
