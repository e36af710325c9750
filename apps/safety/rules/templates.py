"""Three starter policies. A pattern must match the whole sentence, hence the stars around it."""

from __future__ import annotations

from apps.safety.enums import Tolerance
from apps.safety.schemas import Policy

_DENY = ("*drop_*", "*drop table*", "*drop database*", "*delete_all*", "*rm -rf*")
_ASK = ("*delete_*", "*force*", "*deploy*", "*git push*")

TEMPLATES: dict[str, Policy] = {
    "conservative": Policy(
        max_steps=10,
        tolerance=Tolerance.CONSERVATIVE,
        deny=(*_DENY, "*production*"),
        requires_approval=(*_ASK, "*send*", "*install*"),
        challenge_seconds=180,
    ),
    "moderate": Policy(deny=_DENY, requires_approval=_ASK, auto_approve=("read_*", "list_*", "get_*", "search_*")),
    "aggressive": Policy(
        max_steps=100,
        tolerance=Tolerance.AGGRESSIVE,
        deny=_DENY,
        auto_approve=("read_*", "list_*", "get_*", "search_*", "running tests*", "run tests*"),
    ),
}
