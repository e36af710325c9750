"""`manage.py certify`: an installation from before certificates is certified once, by hand, and says what it does."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.approvals.enums import Reason
from apps.approvals.models import ApproverKey
from apps.audit.models import AuditEntry
from kernel.tenancy import tenant_scope
from tests.approvals.test_tokens import verify
from tests.factories.approvals import make_plan, make_token


@pytest.fixture
def plan() -> dict[str, Any]:
    return make_plan()


@pytest.fixture
def old_token(tenant: Any, owner: Any, plan: dict[str, Any], tamper: Any) -> Any:
    """A token from before certificates."""
    token = make_token(tenant, owner, plan)
    tamper("UPDATE approvals_approverkey SET certificate = '' WHERE tenant_id = %s", [tenant.pk])
    return token


def certify(tenant: Any, *arguments: str) -> list[str]:
    said = StringIO()
    try:
        call_command("certify", "--tenant", tenant.slug, *arguments, stdout=said)
    except CommandError as refusal:
        said.write(str(refusal))
    return said.getvalue().splitlines()


def test_token_from_before_certificates_opens_nothing(tenant: Any, old_token: Any, plan: Any) -> None:
    assert verify(tenant, old_token, plan) is Reason.INVALID_SIGNATURE


def test_without_yes_it_counts_and_changes_nothing(tenant: Any, owner: Any, old_token: Any) -> None:
    said = certify(tenant)
    assert f"would certify tenant={tenant.slug} approver_keys=1" in said
    assert "repeat with --yes" in said[-1]
    with tenant_scope(tenant):
        assert ApproverKey.objects.get(user=owner).certificate == ""


def test_with_yes_what_stood_there_is_believed_audited_and_not_certified_twice(
    tenant: Any, old_token: Any, plan: Any
) -> None:
    assert f"certified tenant={tenant.slug} approver_keys=1" in certify(tenant, "--yes")
    assert verify(tenant, old_token, plan) is Reason.OK
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event="certified")
    assert entry.actor == "command:certify"
    assert entry.data == '{"approver_keys":1}'
    assert f"certified tenant={tenant.slug} nothing" in certify(tenant, "--yes")


def test_unknown_company_is_named(database: None) -> None:
    with pytest.raises(CommandError, match="No company has this slug"):
        call_command("certify", "--tenant", "never-made")


def test_without_the_signing_key_it_refuses(tenant: Any, old_token: Any, settings: Any) -> None:
    settings.SILAS_SIGNING_KEY = ""
    assert "signing_key_missing" in certify(tenant, "--yes")[-1]


def test_root_key_command_prints_what_workers_pin(settings: Any, tmp_path: Any) -> None:
    said = StringIO()
    call_command("root_key", "--pin", str(tmp_path / "roots"), stdout=said)
    assert said.getvalue().strip() == settings.SILAS_ROOT_KEYS[0]
    assert (tmp_path / "roots").read_text() == said.getvalue()
