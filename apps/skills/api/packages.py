"""REST API of signed packages: export a version, import a package, list what waits and whose packages are trusted,
refuse and remove.

Pinning a key is not here: a person compares its fingerprint, in the console.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from apps.skills import queries
from apps.skills.api.skills import REFUSALS, requester
from apps.skills.models import SkillPackage, TrustedPublisher
from apps.skills.packages import archive, services
from apps.tenants.api_auth import OwnersView, RequestSerializer
from apps.tenants.enums import KeyScope
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope

SHOWN = 200


class PackageAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    number = serializers.IntegerField(help_text="The version's number where it was made")
    digest = serializers.CharField(help_text="SHA-256 of every path and content")
    publisher = serializers.CharField(help_text="What its publisher calls itself; the key is what counts")
    fingerprint = serializers.SerializerMethodField(help_text="Of the key that signed it")
    state = serializers.CharField(help_text="waiting (for a look at whose it is), taken (proposed) or refused")
    skill_version = serializers.UUIDField(source="version_id", allow_null=True)
    created_at = serializers.DateTimeField()

    def get_fingerprint(self, row: SkillPackage) -> str:
        return archive.fingerprint(row.public_key)


class PublisherAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    fingerprint = serializers.SerializerMethodField()
    trusted_by = serializers.CharField()
    created_at = serializers.DateTimeField()

    def get_fingerprint(self, row: TrustedPublisher) -> str:
        return archive.fingerprint(row.public_key)


class PackageRequest(RequestSerializer):
    package = serializers.FileField(help_text="A signed package, as an installation hands it on")


class Packages(OwnersView):
    """List packages, and import new ones."""

    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    parser_classes = (MultiPartParser,)

    @extend_schema(
        operation_id="skill_packages_list", tags=["skills"], responses={200: PackageAnswer(many=True), **REFUSALS}
    )
    def get(self, request: Request) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return Response(PackageAnswer(SkillPackage.objects.defer("content")[:SHOWN], many=True).data)

    @extend_schema(
        operation_id="skill_packages_import",
        tags=["skills"],
        request=PackageRequest,
        responses={
            201: PackageAnswer,
            **REFUSALS,
            400: OpenApiResponse(description="`invalid`: a field is wrong"),
            409: OpenApiResponse(description="`package_replayed`, `skill_disabled`, `skills_waiting`"),
            422: OpenApiResponse(description="`package_broken` and its like: it is not whole or not as it was signed"),
        },
    )
    def post(self, request: Request) -> Response:
        """Import a package. One from a trusted publisher is proposed; for others, a person reviews the publisher."""
        form = PackageRequest(data=request.data)
        form.is_valid(raise_exception=True)
        raw = form.validated_data["package"].read(archive.MAX_BYTES + 1)
        package = archive.unpack(raw)
        with tenant_scope(self.caller.tenant_id):
            row = services.receive(package, by=requester(self.caller))
            return Response(PackageAnswer(row).data, status.HTTP_201_CREATED)


class RefusingPackage(OwnersView):
    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(
        operation_id="skill_packages_refuse", tags=["skills"], request=None, responses={204: None, **REFUSALS}
    )
    def post(self, request: Request, package_id: UUID) -> Response:
        """Refuse a waiting package and delete its bytes."""
        with tenant_scope(self.caller.tenant_id):
            services.refuse_package(package_id, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Exporting(OwnersView):
    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(
        operation_id="skills_export",
        tags=["skills"],
        responses={
            (200, "application/zip"): OpenApiTypes.BINARY,
            **REFUSALS,
            409: OpenApiResponse(description="`skill_not_active`: only what is in use is handed on"),
        },
    )
    def get(self, request: Request, name: str, number: int) -> HttpResponse:
        """Export the version as one signed file; the same bytes each time."""
        with tenant_scope(self.caller.tenant_id):
            version = next((row for row in queries.all_versions(name) if row.number == number), None)
            if version is None:
                raise NotFound()
            raw = services.export_version(version.pk, actor=self.caller.actor)
        return HttpResponse(raw, content_type="application/zip", headers={"X-Content-Type-Options": "nosniff"})


class Publishers(OwnersView):
    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(
        operation_id="skill_publishers_list", tags=["skills"], responses={200: PublisherAnswer(many=True), **REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """List the trusted publishers."""
        with tenant_scope(self.caller.tenant_id):
            return Response(PublisherAnswer(TrustedPublisher.objects.all()[:SHOWN], many=True).data)


class OnePublisher(OwnersView):
    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(operation_id="skill_publishers_remove", tags=["skills"], responses={204: None, **REFUSALS})
    def delete(self, request: Request, publisher_id: UUID) -> Response:
        """Remove a trusted publisher: new packages from this key wait for review, what was installed stays."""
        with tenant_scope(self.caller.tenant_id):
            services.distrust_publisher(publisher_id, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)
