"""Knowledge in Django admin: collections can be edited, documents viewed or deleted as a whole."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

from apps.audit.admin_base import BaseAdmin, ReadOnlyAdmin
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.knowledge import services
from apps.knowledge.models import (
    ChunkVector,
    Collection,
    Document,
    GapQuestion,
    GapTopic,
    KnowledgeSource,
    SearchSettings,
)
from apps.tenants.admin import TenantRowAdmin
from kernel.tenancy import tenant_scope


@admin.register(Collection)
class CollectionAdmin(TenantRowAdmin):
    list_display = ("name", "title", "min_level", "chunk_count", "created_at")
    search_fields = ("name", "title")
    readonly_fields = ("chunk_count", "created_at")

    def save_model(self, request: HttpRequest, obj: Collection, form: ModelForm[Collection], change: bool) -> None:
        event = AuditEvent.COLLECTION_CHANGED if change else AuditEvent.COLLECTION_OPENED
        with tenant_scope(obj.tenant_id):
            super().save_model(request, obj, form, change)
            record(event, actor=_actor(request), subject=f"collection:{obj.id}")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Document)
class DocumentAdmin(BaseAdmin):
    list_display = ("title", "source_ref", "collection", "updated_at")
    list_filter = ("collection",)
    search_fields = ("title", "source_ref")
    list_select_related = ("collection",)
    exclude = ("tenant",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def delete_model(self, request: HttpRequest, obj: Document) -> None:
        with tenant_scope(obj.tenant_id):
            services.forget_document(obj.id, actor=_actor(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        for document in queryset:
            self.delete_model(request, document)


@admin.register(KnowledgeSource)
class KnowledgeSourceAdmin(ReadOnlyAdmin):
    list_display = ("location", "kind", "collection", "every_hours", "enabled", "next_at")
    list_select_related: ClassVar = ["tenant", "collection"]
    list_filter = ("kind", "enabled")


@admin.register(SearchSettings)
class SearchSettingsAdmin(ReadOnlyAdmin):
    list_display = ("tenant", "embedding_model", "reranker", "embedded", "total", "problem")
    list_select_related: ClassVar = ["tenant", "deployment"]


@admin.register(ChunkVector)
class ChunkVectorAdmin(ReadOnlyAdmin):
    list_display = ("chunk_id", "version")
    exclude = ("embedding",)


@admin.register(GapTopic)
class GapTopicAdmin(ReadOnlyAdmin):
    list_display = ("question", "status", "visitors", "collection", "last_at")
    list_select_related: ClassVar = ["tenant", "collection"]
    list_filter = ("status",)
    exclude = ("centroid",)


@admin.register(GapQuestion)
class GapQuestionAdmin(ReadOnlyAdmin):
    list_display = ("text", "reason", "topic", "asked_at")
    list_select_related: ClassVar = ["tenant", "topic"]
    list_filter = ("reason",)


def _actor(request: HttpRequest) -> str:
    return f"user:{request.user.pk}"
