"""The admin shows a superuser the platform, an owner their own tenant, and everyone else nothing."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.apps import apps
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from apps.audit.admin_base import amount
from apps.guard.models import Budget
from apps.tenants.models import Deployment, Membership
from kernel.tenancy import TenantModel
from silas_platform.admin import group_of
from tests.factories.guard import make_budget
from tests.factories.tenants import make_deployment
from tests.platform.administration import MODELS, PLATFORM_MODELS, browser_of, label, page_of

# What the house writes by itself, and nobody sets; the console or the audit log shows what there is to see of it.
UNSEEN = {
    "contacts.ImportedConversation",
    "messengers.AccountCode",
    "messengers.InboundMail",
    "messengers.ReadMail",
    *("autonomy.Checkpoint", "autonomy.ContextProposal", "autonomy.MemberOptIn", "autonomy.Notification"),
    *("autonomy.Occurrence", "autonomy.OpenQuestion", "autonomy.Precedent", "autonomy.Webhook"),
    *("silas_sessions.MessageNonce", "silas_sessions.VisitorCard"),
    *("inbox.Mention", "inbox.ReadMark", "inbox.SlaMoment"),
    *("silas_sessions.CannedReply", "silas_sessions.DeskState", "silas_sessions.Label", "silas_sessions.Note"),
    "silas_sessions.SessionLabel",
    *("silas_sessions.FormAnswers", "silas_sessions.TranscriptRequest", "silas_sessions.VisitorFile"),
    *("approvals.AlertChoice", "approvals.CardQuestion", "approvals.PushSubscription"),
    *("approvals.Look", "approvals.PasskeyChallenge", "bus.Processed", "bus.QueueMessage", "guard.SpendEntry"),
    *("memory.Intake", "memory.ReadPart", "tenants.FirstRun", "tenants.Sighting"),
    "tenants.DeploymentPicture",
    *("gates.GateVersion", "tenants.Visit"),
    *("safety.Challenge", "safety.Execution", "safety.FailedTries", "safety.Hold", "safety.PolicyVersion"),
    *("safety.SafetyAgent", "safety.Step", "safety.StepWindow", "tenants.PolicySeal", "approvals.GatePause"),
    *("memory.Chunk", "memory.DocumentVersion", "skills.SkillFile", "work.Artifact", "work.Batch", "work.BatchItem"),
    *("work.Course", "work.GoalCycle", "work.LedgerEntry", "work.Planning", "work.PoolSlot", "work.ResearchRequest"),
    *("work.KnowledgeEffect", "work.UndoEntry"),
    "tenants.IdempotentRequest",
    *("tenants.Invitation", "tenants.LoginProvider", "tenants.ProviderAccount"),
    # Registered, seen and revoked on pages of the console: Apps, and each member's account.
    *("tenants.OAuthApp", "tenants.OAuthGrant", "tenants.OAuthToken"),
    # Seen and set on pages of the console that say what they mean: skills, drafts and packages.
    "skills.DraftRevision",
    "skills.SkillDraft",
    "skills.SkillPackage",
    "skills.TrustedPublisher",
    # Sealed, or the way to something sealed: shown nowhere.
    "connections.Credential",
    "connections.OnceGrant",
    "connections.PendingSecret",
    "connections.SetupAnswer",
    "skills.PackageKey",
    "tenants.DataKey",
}


def test_owner_sees_the_index_with_what_can_be_set_first(keeper: Client) -> None:
    page = keeper.get(reverse("admin:index")).content.decode()
    assert page.index("Deployments") < page.index("Budgets") < page.index("Gates") < page.index("Approval tokens")


def test_owner_adds_no_row_of_the_platform(keeper: Client) -> None:
    added = {model: keeper.post(page_of(model, "add"), {}).status_code for model in PLATFORM_MODELS}
    assert added == dict.fromkeys(PLATFORM_MODELS, 403)


@pytest.mark.parametrize("who", ["approver", "agent", "viewer", "stranger"])
def test_others_see_no_page(who: str, request: Any) -> None:
    browser = browser_of(request.getfixturevalue(who))
    pages = [reverse("admin:index"), *(page_of(model, "changelist") for model in MODELS)]
    assert [page for page in pages if browser.get(page).status_code != 403] == []


def test_every_row_that_a_tenant_sets_has_a_page() -> None:
    rows = [model for model in apps.get_models() if issubclass(model, TenantModel)]
    assert {model._meta.label for model in rows if model not in MODELS} == UNSEEN


def test_administration_without_login_leads_to_the_consoles_login(database: None) -> None:
    first = Client().get(reverse("admin:index"), follow=True)
    assert first.redirect_chain[-1][0] == f"{reverse('console-login')}?next={reverse('admin:index')}"


@pytest.mark.parametrize("query", ["tenant__slug__startswith=t", "user__password__startswith=p"])
def test_list_cannot_be_asked_about_what_it_does_not_show(keeper: Client, query: str) -> None:
    assert keeper.get(f"{page_of(Membership, 'changelist')}?{query}").status_code in (302, 400)


def test_lists_have_names_that_read_as_english() -> None:
    wrong = re.compile(r"[^aeiou]ys$|(?:ch|sh|x|s)s$|\bapi\b|\bit requests")
    assert [label(model) for model in MODELS if wrong.search(str(model._meta.verbose_name_plural))] == []


def test_title_says_which_row() -> None:
    assert [label(model) for model in MODELS if model.__str__ is Model.__str__] == []


def test_index_has_a_group_for_every_table() -> None:
    assert [label(model) for model in MODELS if group_of(model._meta.label_lower) is None] == []


def test_index_is_grouped_in_the_words_of_the_console(keeper: Client) -> None:
    groups = re.findall(r"<caption>([^<]+)</caption>", keeper.get(reverse("admin:index")).content.decode())
    assert groups[:7] == ["Workspace", "Chatbots", "Policy", "Abilities", "Automation", "Security", "Developers"]
    assert "Other" not in groups


def test_money_is_written_as_money(keeper: Client, tenant: Any) -> None:
    budget = make_budget(tenant, "20")
    assert 'value="20.00"' in keeper.get(page_of(Budget, "change", budget.pk)).content.decode()
    listed = keeper.get(page_of(Budget, "changelist")).content.decode()
    assert "20.00" in listed
    assert "20.000000000" not in listed


@pytest.mark.parametrize(("written", "shown"), [("20", "20.00"), ("0.004", "0.004"), ("0.000000001", "0.000000001")])
def test_amount_loses_no_digit_that_counts(written: str, shown: str) -> None:
    assert amount(Decimal(written).quantize(Decimal("0.000000001"))) == shown


def test_row_leads_to_its_page_in_the_console(keeper: Client, tenant: Any) -> None:
    place = make_deployment(tenant)
    address = reverse("console-studio", args=[place.pk])
    assert f'href="{address}"' in keeper.get(page_of(Deployment, "change", place.pk)).content.decode()
