"""Channels, their threads and messages in Django admin, to view."""

from __future__ import annotations

from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.messengers.models import ApproverAccount, CardNotice, CardPolicy, Channel, ChannelMessage, ChannelThread


@admin.register(Channel)
class ChannelAdmin(ReadOnlyAdmin):
    list_display = ("name", "kind", "deployment", "enabled", "problem", "created_at", "removed_at")
    list_select_related = ("deployment",)
    list_filter = ("kind", "enabled")
    exclude = ("sealed", "kept")


@admin.register(ChannelThread)
class ChannelThreadAdmin(ReadOnlyAdmin):
    list_display = ("peer", "peer_name", "channel", "proved_by", "opted_out_at", "last_received_at")
    list_select_related = ("channel",)
    exclude = ("confirm_hash", "reference", "key")


@admin.register(ChannelMessage)
class ChannelMessageAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "channel", "direction", "state", "problem", "seq")
    list_select_related = ("channel",)
    list_filter = ("direction", "state")
    exclude = ("held",)


@admin.register(CardPolicy)
class CardPolicyAdmin(ReadOnlyAdmin):
    list_display = ("tenant", "enabled", "decide_in_place", "verified_days")
    list_select_related = ("tenant",)
    exclude = ("certificate",)


@admin.register(ApproverAccount)
class ApproverAccountAdmin(ReadOnlyAdmin):
    list_display = ("user", "channel", "account", "linked_at", "last_verified_at")
    list_select_related = ("user", "channel")
    exclude = ("certificate",)


@admin.register(CardNotice)
class CardNoticeAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "card", "user", "channel", "state", "problem")
    list_select_related = ("card", "user", "channel")
    list_filter = ("state",)
