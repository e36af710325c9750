"""REST API of saved views (contract interfaces, HTTP): the team's for a program, and a member's own as well."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.inbox import saved_views
from apps.inbox.api import MemberName, StaffView
from apps.inbox.enums import ViewPage
from apps.inbox.saved_views import MAX_NAME
from apps.tenants.api_auth import (
    CHANGED_MEANWHILE,
    IF_MATCH,
    RESOURCE_REFUSALS,
    RequestSerializer,
    require_unchanged,
    uncached,
    validated,
    with_etag,
)
from kernel.tenancy import tenant_scope

_SAVE_REFUSALS: dict[int, OpenApiResponse] = {
    **RESOURCE_REFUSALS,
    400: OpenApiResponse(description="`invalid`, `bad_name`; `bad_view`: the page has no such filter"),
    409: OpenApiResponse(description="`name_taken`; `too_many`"),
}


class SavedViewAnswer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    page = serializers.ChoiceField(choices=ViewPage.values)
    owner = MemberName(allow_null=True, help_text="Whose own view it is; null for the team's")
    parameters = serializers.DictField(
        child=serializers.CharField(), help_text="The parameters of the page's address, such as `status` or `risk`"
    )


class SavedViewsAnswer(serializers.Serializer[object]):
    saved_views = SavedViewAnswer(many=True)


class SavedViewRequest(RequestSerializer):
    name = serializers.CharField(max_length=MAX_NAME)
    page = serializers.ChoiceField(choices=ViewPage.values)
    is_personal = serializers.BooleanField(default=False, help_text="Only for members")
    parameters = serializers.DictField(
        child=serializers.CharField(max_length=200, allow_blank=True),
        help_text="inbox: `tab`, `status`, `label`, `team`, `deployment`, `assignee`, `queue`, `level`, `q`; review:"
        " `risk`, `kind`, `chatbot`, `due`, `assigned`, `sort`",
    )

    def validate_page(self, page: str) -> ViewPage:
        return ViewPage(page)


class PageQuery(RequestSerializer):
    page = serializers.ChoiceField(choices=ViewPage.values, required=False)


class SavedViews(StaffView):
    @extend_schema(
        operation_id="saved_views_list",
        tags=["saved-views"],
        parameters=[OpenApiParameter("page", str, enum=ViewPage.values, description="Of this page only")],
        responses={200: SavedViewsAnswer, **RESOURCE_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """List saved views by name."""
        page = validated(PageQuery, request.query_params).get("page")
        with tenant_scope(self.caller.tenant_id):
            rows = saved_views.views_for(self.staff, ViewPage(page) if page else None)
            return uncached(SavedViewsAnswer({"saved_views": rows}).data)

    @extend_schema(
        operation_id="saved_views_create",
        tags=["saved-views"],
        request=SavedViewRequest,
        responses={201: SavedViewAnswer, **_SAVE_REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Save a filter of the inbox or of Review under a name."""
        values = validated(SavedViewRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            view = saved_views.save_view(self.staff, **values)
            return with_etag(SavedViewAnswer(view).data, status.HTTP_201_CREATED)


class OneSavedView(StaffView):
    @extend_schema(
        operation_id="saved_views_get", tags=["saved-views"], responses={200: SavedViewAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request, view_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return with_etag(SavedViewAnswer(saved_views.view_for(self.staff, view_id)).data)

    @extend_schema(
        operation_id="saved_views_replace",
        tags=["saved-views"],
        request=SavedViewRequest,
        parameters=[IF_MATCH],
        responses={200: SavedViewAnswer, **_SAVE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def put(self, request: Request, view_id: UUID) -> Response:
        values = validated(SavedViewRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            self._require_unchanged(request, view_id)
            view = saved_views.save_view(self.staff, view_id=view_id, **values)
            return with_etag(SavedViewAnswer(view).data)

    @extend_schema(
        operation_id="saved_views_delete",
        tags=["saved-views"],
        parameters=[IF_MATCH],
        responses={204: None, **RESOURCE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def delete(self, request: Request, view_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            self._require_unchanged(request, view_id)
            saved_views.delete_view(self.staff, view_id)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _require_unchanged(self, request: Request, view_id: UUID) -> None:
        require_unchanged(request, SavedViewAnswer(saved_views.lock_view(self.staff, view_id)).data)
