"""An approval is spent and asked about where the specification says, and nowhere else (spec 5.11, call sites)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.source import Module, modules

SERVICES = "apps.approvals.tokens.services"
ROOM = "apps.approvals"
# Who authorizes: a plan's decision, a goal's child under its standing approval (5.1.2 step 6, 5.2.3 step 4), and the
# decision of a reviewed batch (5.2.4 step 4), what earned autonomy changes (5.1.6), and a change of a connection or one
# use of a permission (5.10.2); and the activation of a skill (10.4 step 4).
VERIFIES = {
    "apps.autonomy.services.limit_increases",
    "apps.connections.permissions",
    "apps.connections.services.requests",
    "apps.skills.trials",
    "apps.work.services.authorization",
    "apps.work.services.batches",
    "apps.work.services.standing_terms",
    "apps.work.services.thresholds",
}
# Where work begins, for every kind of work (5.2.1 step 0).
CHECKS = {"apps.work.services.authority"}


def callers(verb: str, among: tuple[Module, ...] | None = None) -> set[str]:
    """Modules outside the room that call this verb of its services, by whichever name they imported it."""
    wanted = f"{SERVICES}.{verb}"
    outside = [module for module in among or modules() if not f"{module.name}.".startswith(f"{ROOM}.")]
    return {module.name for module in outside if wanted in module.calls}


def test_approvals_are_spent_at_the_authorization_sites_only() -> None:
    assert callers("verify_token") == VERIFIES


def test_approvals_are_checked_where_work_begins() -> None:
    assert callers("check_token") == CHECKS


def test_nobody_outside_the_room_mints_a_token() -> None:
    assert callers("issue_token") == set()


def test_nobody_outside_the_room_spends_by_the_database_function() -> None:
    users = [module.name for module in modules() if "approvals_spend" in module.path.read_text()]
    outside = {"apps.approvals.sql.spend", "apps.approvals.locks", "silas_platform.worker_rights"}
    assert {user for user in users if "migrations" not in user} - outside == set()


@pytest.mark.parametrize(
    "text",
    [
        "from apps.approvals.tokens import services\nservices.verify_token(1, 2)",
        "from apps.approvals.tokens.services import verify_token as spend\nspend(1, 2)",
        "from apps.approvals.tokens.services import verify_token\nverify_token(1, 2)",
    ],
)
def test_caller_elsewhere_is_found(text: str) -> None:
    module = Module("apps.work.elsewhere", Path(), ast.parse(text))
    assert callers("verify_token", (module,)) == {"apps.work.elsewhere"}
