"""The administration as a person opens it: whose browser, which page, what a form holds. For the tests of it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.contrib import admin
from django.test import Client
from django.urls import reverse

from apps.tenants.models import Deployment
from kernel.tenancy.models import TenantManager

# Registered by `silas_platform`'s own site when Django starts.
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
TENANT_MODELS = [model for model in MODELS if isinstance(model._default_manager, TenantManager)]
PLATFORM_MODELS = [model for model in MODELS if model not in TENANT_MODELS]


def browser_of(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page_of(model: Any, name: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


def label(model: Any) -> str:
    return str(model._meta.label)


def deployment_fields() -> dict[str, Any]:
    key = f"k-{uuid4().hex[:12]}"
    return {
        "title": "Desk",
        "slug": key,
        "public_key": key,
        "enabled": "on",
        "allowed_origins": "",
        "suggestions": "",
        **{f"model_names_{role}": "builtin:grounded" for role in ("proxy", "planner", "executor")},
    }


def changed(browser: Client, deployment: Any, **fields: Any) -> str:
    data = {**deployment_fields(), "public_key": deployment.public_key, "slug": deployment.slug, **fields}
    return browser.post(page_of(Deployment, "change", deployment.pk), data, follow=True).content.decode()
