"""REST API of deployments, for owners and credentials with the scopes `deployments:*`: create one, read and change its
settings as the studio does, its provider keys, and the code for websites.

It stands here because what a deployment offers its visitors does. Keys of model providers are never read back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from apps.releases.queries import main_release
from apps.tenants.api_auth import (
    IF_MATCH,
    OWNERS_REFUSALS,
    RESOURCE_REFUSALS,
    OwnersView,
    PageRequest,
    RequestSerializer,
    require_unchanged,
    uncached,
    validated,
    with_etag,
)
from apps.tenants.enums import KeyScope, PictureKind
from apps.tenants.install_pings import last_pings
from apps.tenants.locks import lock_deployment
from apps.tenants.models import Deployment
from apps.tenants.pictures import MOST_BYTES, remove_picture, store_picture
from apps.tenants.provider_keys import (
    LONGEST_KEY,
    PROVIDER_MESSAGES,
    remove_provider_key,
    server_addresses,
    server_problem,
    store_provider_key,
    try_model,
)
from apps.tenants.queries import deployment_by_id, list_deployments, models_without_key
from apps.tenants.services import change_deployment
from apps.visitors import offers
from apps.visitors.chatbots import create_chatbot
from apps.visitors.enums import QuestionKind
from apps.widgets.snippets import policy_lines, snippet
from apps.widgets.views import loader_integrity
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.http.addresses import MAX_URL_LENGTH
from kernel.tenancy import tenant_scope
from llm.credentials import join_credential
from llm.models import is_builtin, is_known


class DeploymentLine(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    slug = serializers.CharField()
    title = serializers.CharField()
    public_key = serializers.CharField(help_text="In the address of its widget")
    enabled = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class QuestionAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=QuestionKind.choices)
    label = serializers.CharField()  # type: ignore[assignment]  # hides the serializer's own attribute
    required = serializers.BooleanField()  # type: ignore[assignment]  # as above
    choices = serializers.ListField(child=serializers.CharField(), source="options")


class OffersAnswer(serializers.Serializer[Any]):
    pictures = serializers.BooleanField(help_text="Whether visitors may send them, as the next three")
    pdfs = serializers.BooleanField()
    texts = serializers.BooleanField()
    office = serializers.BooleanField()
    file_megabytes = serializers.IntegerField()
    files_each = serializers.IntegerField()
    consent_text = serializers.CharField()
    consent_link = serializers.CharField()
    consent_version = serializers.CharField()
    conversations = serializers.BooleanField(help_text="Whether visitors see their earlier conversations")
    transcripts = serializers.BooleanField()
    read_receipts = serializers.BooleanField(
        help_text="Whether visitors see when the person who answers has read their messages"
    )
    rating = serializers.CharField(help_text="`stars`, `thumbs` or empty")


class PictureAnswer(serializers.Serializer[Any]):
    address = serializers.CharField(help_text="Path at this installation; another picture has another one")
    width = serializers.IntegerField()
    height = serializers.IntegerField()


class DeploymentDetail(DeploymentLine):
    greeting = serializers.CharField()
    suggestions = serializers.ListField(child=serializers.CharField())
    theme = serializers.DictField()
    logo = PictureAnswer(allow_null=True, help_text="In the widget's header")
    avatar = PictureAnswer(allow_null=True, help_text="Beside its messages")
    languages = serializers.ListField(child=serializers.CharField(), help_text="Of the widget; empty for all")
    persona = serializers.CharField(help_text="Its tone of voice; its sliders are at `/api/v1/personas/{id}`")
    models = serializers.DictField(source="model_names", help_text="By role: proxy, planner, executor, scorer")
    provider_keys = serializers.ListField(child=serializers.CharField(), help_text="Providers whose key is stored")
    provider_addresses = serializers.DictField(
        child=serializers.CharField(), help_text="Addresses of servers of your own, by provider"
    )
    models_without_key = serializers.ListField(child=serializers.CharField())
    allowed_origins = serializers.ListField(child=serializers.CharField())
    last_loaded = serializers.DictField(
        child=serializers.DateTimeField(), help_text="When the widget was last loaded, by origin; a hint"
    )
    opening_hours = serializers.DictField()
    timezone = serializers.CharField(help_text="Of the opening hours; empty for the company's")
    after_hours = serializers.CharField()
    active_goal_id = serializers.UUIDField(allow_null=True, help_text="The goal that governs its conversations")
    release = serializers.IntegerField(allow_null=True, help_text="Its main release; null if none was published")
    offers = OffersAnswer(help_text="What visitors may do beside talking")
    questions = QuestionAnswer(many=True, help_text="The form before a conversation")


class DeploymentsAnswer(serializers.Serializer[Any]):
    deployments = DeploymentLine(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class NewDeploymentRequest(RequestSerializer):
    title = serializers.CharField(max_length=80, help_text="Shown at the top of the chat")
    like = serializers.UUIDField(
        required=False, allow_null=True, default=None, help_text="The deployment whose settings and keys it gets"
    )


class OffersRequest(RequestSerializer):
    pictures = serializers.BooleanField(required=False)
    pdfs = serializers.BooleanField(required=False)
    texts = serializers.BooleanField(required=False)
    office = serializers.BooleanField(required=False)
    file_megabytes = serializers.IntegerField(required=False, min_value=1, max_value=25)
    files_each = serializers.IntegerField(required=False, min_value=1, max_value=32767)
    consent_text = serializers.CharField(required=False, allow_blank=True, max_length=2000)
    consent_link = serializers.CharField(required=False, allow_blank=True, max_length=500)
    consent_version = serializers.CharField(required=False, allow_blank=True, max_length=40)
    conversations = serializers.BooleanField(required=False)
    transcripts = serializers.BooleanField(required=False)
    read_receipts = serializers.BooleanField(required=False)
    rating = serializers.CharField(required=False, allow_blank=True, max_length=10)


class QuestionRequest(RequestSerializer):
    kind = serializers.ChoiceField(choices=QuestionKind.choices)
    label = serializers.CharField(max_length=120)  # type: ignore[assignment]  # hides the serializer's own attribute
    required = serializers.BooleanField(default=False)  # type: ignore[assignment]  # as above
    choices = serializers.ListField(child=serializers.CharField(max_length=80), required=False, default=list)


class DeploymentEdit(RequestSerializer):
    title = serializers.CharField(required=False, max_length=80)
    enabled = serializers.BooleanField(required=False, help_text="Whether it answers")
    greeting = serializers.CharField(required=False, allow_blank=True, max_length=300)
    suggestions = serializers.ListField(child=serializers.CharField(), required=False)
    theme = serializers.DictField(child=serializers.CharField(), required=False, help_text="The whole theme")
    languages = serializers.ListField(child=serializers.CharField(), required=False, help_text="The first is default")
    persona = serializers.CharField(required=False, allow_blank=True, max_length=4000)
    models = serializers.DictField(child=serializers.CharField(max_length=120), required=False, source="model_names")
    allowed_origins = serializers.ListField(child=serializers.CharField(), required=False)
    opening_hours = serializers.DictField(child=serializers.CharField(max_length=80), required=False)
    timezone = serializers.CharField(required=False, allow_blank=True, max_length=60)
    after_hours = serializers.CharField(required=False, allow_blank=True, max_length=500)
    offers = OffersRequest(required=False, help_text="What you name is changed")
    questions = QuestionRequest(many=True, required=False, help_text="All questions, in order")


class ProviderKeyRequest(RequestSerializer):
    model = serializers.CharField(max_length=120, help_text="A model of the provider, with which the key is tested")
    key = serializers.CharField(
        max_length=LONGEST_KEY, default="", allow_blank=True, help_text="Stored encrypted, never read back"
    )
    address = serializers.CharField(
        max_length=MAX_URL_LENGTH,
        default="",
        allow_blank=True,
        help_text="Of a server of your own: `compatible`, `compatible-responses`, `azure`, `ollama`",
    )


class PictureRequest(RequestSerializer):
    file = serializers.FileField(
        max_length=1000, help_text="PNG, JPEG or WebP, up to 256 KB, 16 to 1024 pixels wide and high"
    )


class InstallAnswer(serializers.Serializer[Any]):
    snippet = serializers.CharField(help_text="For every page that should show the chat")
    integrity = serializers.CharField(help_text="With which a page may pin the script")
    content_security_policy = serializers.ListField(child=serializers.CharField(), help_text="What the page must allow")


# What a PATCH can change, and so what the ETag is of.
_EDITABLE = tuple(DeploymentEdit().fields)
_REFUSALS = {
    **RESOURCE_REFUSALS,
    400: OpenApiResponse(
        description="`invalid`; `invalid_deployment`, `invalid_offers`, `invalid_form`: a field is wrong"
    ),
}


class _DeploymentView(OwnersView):
    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE


class Deployments(_DeploymentView):
    @extend_schema(
        operation_id="deployments_list",
        tags=["deployments"],
        parameters=[PageRequest],
        responses={
            200: DeploymentsAnswer,
            **OWNERS_REFUSALS,
            400: OpenApiResponse(description="`invalid`: a field is wrong"),
        },
    )
    def get(self, request: Request) -> Response:
        """List deployments, newest first."""
        values = validated(PageRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            rows, following = list_deployments(**values)
            return uncached(DeploymentsAnswer({"deployments": rows, "next": following}).data)

    @extend_schema(
        operation_id="deployments_create",
        tags=["deployments"],
        request=NewDeploymentRequest,
        responses={
            201: DeploymentDetail,
            **RESOURCE_REFUSALS,
            409: OpenApiResponse(description="`deployments_full`"),
        },
    )
    def post(self, request: Request) -> Response:
        """Create a chatbot, with the settings of another one if wanted."""
        sent = validated(NewDeploymentRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            like = deployment_by_id(sent["like"]) if sent["like"] else None
            place = create_chatbot(sent["title"], like=like, actor=self.caller.actor)
            return with_etag(_detail(place), status.HTTP_201_CREATED, of=_editable(_detail(place)))


class OneDeployment(_DeploymentView):
    @extend_schema(
        operation_id="deployments_get",
        tags=["deployments"],
        responses={200: DeploymentDetail, **OWNERS_REFUSALS, 404: OpenApiResponse(description="`not_found`")},
    )
    def get(self, request: Request, deployment_id: UUID) -> Response:
        """Read a deployment's settings as saved, with their ETag; conversations read its release, if there is one."""
        with tenant_scope(self.caller.tenant_id):
            return _shown(deployment_by_id(deployment_id))

    @extend_schema(
        operation_id="deployments_change",
        tags=["deployments"],
        request=DeploymentEdit,
        parameters=[IF_MATCH],
        responses={
            200: DeploymentDetail,
            **_REFUSALS,
            412: OpenApiResponse(description="`changed_meanwhile`: not at the version of `If-Match`"),
        },
    )
    def patch(self, request: Request, deployment_id: UUID) -> Response:
        """Change what you name: all of it, or nothing."""
        sent = validated(DeploymentEdit, request.data)
        features, questions = sent.pop("offers", None), sent.pop("questions", None)
        with tenant_scope(self.caller.tenant_id):
            place = lock_deployment(deployment_id)
            require_unchanged(request, _editable(_detail(place)))
            change_deployment(place, actor=self.caller.actor, **sent)
            if features is not None:
                offers.change(place, actor=self.caller.actor, **features)
            if questions is not None:
                offers.change_form(place, questions, actor=self.caller.actor)
            return _shown(place)


class ProviderKeys(_DeploymentView):
    @extend_schema(
        operation_id="provider_keys_set",
        tags=["deployments"],
        request=ProviderKeyRequest,
        responses={
            200: DeploymentDetail,
            **RESOURCE_REFUSALS,
            422: OpenApiResponse(description="`bad_provider_key`: the provider does not accept it"),
        },
    )
    def put(self, request: Request, deployment_id: UUID) -> Response:
        """Store a provider's key, in place of an older one, after a small request with it has been answered."""
        sent = validated(ProviderKeyRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            place = deployment_by_id(deployment_id)
        model, key, address = sent["model"], sent["key"], sent["address"]
        problem = _model_problem(model) or server_problem(model, key=key, address=address)
        if problem := problem or try_model(model, join_credential(key, address)).problem:
            raise SilasError(ErrorCode.BAD_PROVIDER_KEY, problem)
        with tenant_scope(self.caller.tenant_id):
            store_provider_key(place, **sent, actor=self.caller.actor)
            return _shown(place)


class OneProviderKey(_DeploymentView):
    @extend_schema(
        operation_id="provider_keys_remove", tags=["deployments"], responses={204: None, **RESOURCE_REFUSALS}
    )
    def delete(self, request: Request, deployment_id: UUID, provider: str) -> Response:
        with tenant_scope(self.caller.tenant_id):
            remove_provider_key(deployment_by_id(deployment_id), provider=provider, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


_PICTURE_REFUSALS = {
    **RESOURCE_REFUSALS,
    400: OpenApiResponse(description="`picture_kind`, `picture_dimensions`; `invalid`: a field is wrong"),
    413: OpenApiResponse(description="`picture_too_large`"),
}


class _Picture(_DeploymentView):
    parser_classes = (MultiPartParser,)
    kind: PictureKind

    def store(self, request: Request, deployment_id: UUID) -> Response:
        content = validated(PictureRequest, request.data)["file"].read(MOST_BYTES + 1)
        with tenant_scope(self.caller.tenant_id):
            place = deployment_by_id(deployment_id)
            return _shown(store_picture(place, self.kind, content, actor=self.caller.actor))

    def remove(self, deployment_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            remove_picture(deployment_by_id(deployment_id), self.kind, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Logo(_Picture):
    kind = PictureKind.LOGO

    @extend_schema(
        operation_id="deployment_logo_set",
        tags=["deployments"],
        request={"multipart/form-data": PictureRequest},
        responses={200: DeploymentDetail, **_PICTURE_REFUSALS},
    )
    def put(self, request: Request, deployment_id: UUID) -> Response:
        """Store the logo in the widget's header, in place of an older one. Every visitor sees it at once."""
        return self.store(request, deployment_id)

    @extend_schema(
        operation_id="deployment_logo_remove", tags=["deployments"], responses={204: None, **RESOURCE_REFUSALS}
    )
    def delete(self, request: Request, deployment_id: UUID) -> Response:
        return self.remove(deployment_id)


class Avatar(_Picture):
    kind = PictureKind.AVATAR

    @extend_schema(
        operation_id="deployment_avatar_set",
        tags=["deployments"],
        request={"multipart/form-data": PictureRequest},
        responses={200: DeploymentDetail, **_PICTURE_REFUSALS},
    )
    def put(self, request: Request, deployment_id: UUID) -> Response:
        """Store the avatar beside the chatbot's messages, in place of an older one. Every visitor sees it at once."""
        return self.store(request, deployment_id)

    @extend_schema(
        operation_id="deployment_avatar_remove", tags=["deployments"], responses={204: None, **RESOURCE_REFUSALS}
    )
    def delete(self, request: Request, deployment_id: UUID) -> Response:
        return self.remove(deployment_id)


class Install(_DeploymentView):
    @extend_schema(
        operation_id="deployments_install",
        tags=["deployments"],
        responses={200: InstallAnswer, **RESOURCE_REFUSALS},
    )
    def get(self, request: Request, deployment_id: UUID) -> Response:
        """The code with which a website shows the chat."""
        address = request.build_absolute_uri("/")
        with tenant_scope(self.caller.tenant_id):
            place = deployment_by_id(deployment_id)
        code = {"snippet": snippet(address, place), "integrity": loader_integrity()}
        return uncached(InstallAnswer({**code, "content_security_policy": policy_lines(address)}).data)


def _shown(place: Deployment) -> Response:
    data = _detail(place)
    return with_etag(data, of=_editable(data))


def _editable(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: data[name] for name in _EDITABLE}


def _detail(place: Deployment) -> dict[str, Any]:
    release = main_release(place.pk)
    place.__dict__.update(
        provider_keys=sorted(place.sealed_keys),
        provider_addresses=server_addresses(place),
        models_without_key=models_without_key(place),
        last_loaded=last_pings(place),
        release=release.number if release else None,
        offers=offers.offers_of(place.pk),
        questions=offers.questions_of(place.pk),
    )
    return dict(DeploymentDetail(place).data)


def _model_problem(model: str) -> str:
    known = is_known(model) and not is_builtin(model)
    return "" if known else str(PROVIDER_MESSAGES["unknown_model"])
