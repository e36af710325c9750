"""REST API for owners of what a chatbot inferred from decisions and ratings: read it, and turn it off."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.autonomy.api.requests import acting_user
from apps.suggestions.queries import preference_of, preferences_of
from apps.suggestions.services import preferences
from apps.tenants.api_auth import RESOURCE_REFUSALS, OwnersView, uncached
from apps.tenants.enums import KeyScope
from apps.tenants.queries import deployment_by_id
from kernel.tenancy import tenant_scope


class PreferenceAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    content = serializers.CharField(help_text="A sentence that every turn of the chatbot reads once it is kept")
    state = serializers.CharField(help_text="`proposed` or `kept`")
    hits = serializers.IntegerField(help_text="How many of `sample_size` decisions or ratings went this way")
    sample_size = serializers.IntegerField()
    people = serializers.IntegerField(help_text="From how many persons it was learnt")
    card = serializers.UUIDField(source="card_id", allow_null=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)


class PreferencesAnswer(serializers.Serializer[Any]):
    preferences = PreferenceAnswer(many=True)


class Preferences(OwnersView):
    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(
        operation_id="preferences_list", tags=["deployments"], responses={200: PreferencesAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request, deployment_id: UUID) -> Response:
        """List the preferences that count now or wait for a decision, newest first. One is kept by its card."""
        with tenant_scope(self.caller.tenant_id):
            rows = preferences_of(deployment_by_id(deployment_id).pk)
            return uncached(PreferencesAnswer({"preferences": rows}).data)


class OnePreference(OwnersView):
    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(operation_id="preferences_dismiss", tags=["deployments"], responses={204: None, **RESOURCE_REFUSALS})
    def delete(self, request: Request, deployment_id: UUID, preference_id: UUID) -> Response:
        """Dismiss a preference or turn it off: the chatbot forgets it at once."""
        with tenant_scope(self.caller.tenant_id):
            row = preference_of(deployment_by_id(deployment_id).pk, preference_id)
            preferences.dismiss(row.pk, user=acting_user(self.caller))
        return Response(status=status.HTTP_204_NO_CONTENT)
