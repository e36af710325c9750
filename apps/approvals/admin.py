"""What an administrator may look at here: everything but sealed keys, and nothing can be changed."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from apps.approvals.models import ApprovalToken, ApproverKey, Card, Decision, TokenUse
from apps.audit.admin import ReadOnlyAdmin


@admin.register(Card)
class CardAdmin(ReadOnlyAdmin):
    list_display = ("intent", "kind", "risk", "status", "created_at")
    list_filter = ("status", "risk", "kind")
    ordering = ("-created_at",)


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    list_display = ("card", "verdict", "user", "decided_at")
    list_filter = ("verdict",)
    ordering = ("-decided_at",)


@admin.register(ApprovalToken)
class ApprovalTokenAdmin(ReadOnlyAdmin):
    list_display = ("id", "scope", "work_item_id", "issued_at", "expires_at", "key_id")
    ordering = ("-issued_at",)


@admin.register(TokenUse)
class TokenUseAdmin(ReadOnlyAdmin):
    list_display = ("token_nonce", "ordinal", "subject_id", "used_at")
    ordering = ("-used_at",)


@admin.register(ApproverKey)
class ApproverKeyAdmin(ReadOnlyAdmin):
    list_display = ("user", "key_id", "created_at")
    exclude: ClassVar = ["sealed_private"]
