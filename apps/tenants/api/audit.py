"""REST API of the audit log: its entries, the proof of one, and for owners the check and the export of all.

It stands here because the room of the log knows no companies' keys and roles.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.audit.bundles import export_chain
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.audit.queries import (
    chain_of,
    entry_at,
    head_of,
    newest_entries,
    proof_of,
    verify_chain,
    within_period,
)
from apps.tenants.api_auth import MembersView, OwnersView, RequestSerializer, uncached, validated
from apps.tenants.enums import KeyScope
from kernel.errors import NotFound
from kernel.language import gettext
from kernel.tenancy import tenant_scope

_REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: this role may not; `forbidden_scope`: the key has scopes"),
}


class AuditRequest(RequestSerializer):
    event = serializers.CharField(required=False, max_length=60, help_text="Such as `card_decided`")
    subject = serializers.CharField(required=False, max_length=80, help_text="Such as `card:…` or `session:…`")
    actor = serializers.CharField(required=False, max_length=80, help_text="Such as `user:…` or `api_key:…`")
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False, help_text="Entries before this time")
    before = serializers.RegexField(
        r"^[0-9]{1,18}$", required=False, allow_blank=True, default="", help_text="`next` of the page before"
    )
    limit = serializers.IntegerField(default=50, min_value=1, max_value=200)

    def validate_event(self, value: str) -> str:
        if value not in AuditEvent.values:
            raise serializers.ValidationError(gettext("There is no such event."))
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for name in ("since", "until"):
            if name in attrs and not 2000 <= attrs[name].year < 2200:
                raise serializers.ValidationError({name: [gettext("Use a date between 2000 and 2199.")]})
        return attrs


class EntryAnswer(serializers.Serializer[Any]):
    seq = serializers.IntegerField(help_text="Its number in the log, without gaps")
    id = serializers.UUIDField(source="entry_id")
    event = serializers.CharField()
    actor = serializers.CharField()
    subject = serializers.CharField()
    # A serializer has data of its own, which is not this field.
    data = serializers.SerializerMethodField()  # type: ignore[assignment]  # hides the serializer's own attribute
    timestamp = serializers.DateTimeField()
    prev_hash = serializers.CharField(help_text="`entry_hash` of the entry before")
    entry_hash = serializers.CharField()

    def get_data(self, entry: AuditEntry) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(entry.data)
        return data


class HeadAnswer(serializers.Serializer[Any]):
    seq = serializers.IntegerField()
    entry_hash = serializers.CharField()


class AuditAnswer(serializers.Serializer[Any]):
    entries = EntryAnswer(many=True)
    head = HeadAnswer(help_text="Where the log ends now")
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class BreakAnswer(serializers.Serializer[Any]):
    seq = serializers.IntegerField()
    reason = serializers.CharField(help_text="See docs/audit-format.md")


class ProofAnswer(serializers.Serializer[Any]):
    line = serializers.DictField(help_text="The entry as a line of the export: what `entry_hash` is computed from")
    checkpoint = serializers.DictField(
        allow_null=True, help_text="The first signed checkpoint from this entry on; null until the next one is signed"
    )
    public_key = serializers.CharField(help_text="The key of the checkpoint, Ed25519 as hex")
    broken = BreakAnswer(allow_null=True, help_text="Null if the log holds from this entry to the checkpoint or end")


class EntryDetail(EntryAnswer):
    proof = ProofAnswer()


class VerificationOfLog(serializers.Serializer[Any]):
    entries = serializers.IntegerField(help_text="How many entries hold")
    head = serializers.CharField(help_text="The hash in which they end")
    broken = BreakAnswer(allow_null=True)


class Audit(MembersView):
    reading, writing = KeyScope.AUDIT_READ, KeyScope.AUDIT_READ

    @extend_schema(
        operation_id="audit_list",
        tags=["audit"],
        parameters=[AuditRequest],
        responses={200: AuditAnswer, **_REFUSALS, 400: OpenApiResponse(description="`invalid`: a field is wrong")},
    )
    def get(self, request: Request) -> Response:
        """List entries, newest first."""
        values = validated(AuditRequest, request.query_params)
        before, limit, chain = values.pop("before"), values.pop("limit"), self.caller.tenant_id
        since, until = values.pop("since", None), values.pop("until", None)
        with tenant_scope(chain):
            where = Q(**values) & within_period(chain, since, until)
            rows = newest_entries(chain, below=int(before) if before else None, limit=limit + 1, where=where)
            shown = rows[:limit]
            following = str(shown[-1].seq) if len(rows) > limit else ""
            return uncached(AuditAnswer({"entries": shown, "head": head_of(chain), "next": following}).data)


class OneEntry(MembersView):
    reading, writing = KeyScope.AUDIT_READ, KeyScope.AUDIT_READ

    @extend_schema(
        operation_id="audit_get",
        tags=["audit"],
        responses={200: EntryDetail, **_REFUSALS, 404: OpenApiResponse(description="`not_found`: no such number")},
    )
    def get(self, request: Request, seq: int) -> Response:
        """Read an entry with what proves it."""
        chain = self.caller.tenant_id
        with tenant_scope(chain):
            row, proof = entry_at(chain, seq), proof_of(chain, seq)
            if row is None or proof is None:
                raise NotFound()
            row.__dict__["proof"] = {
                "line": asdict(proof.entry),
                "checkpoint": asdict(proof.checkpoint) if proof.checkpoint else None,
                "public_key": proof.public_key,
                "broken": proof.broken,
            }
            return uncached(EntryDetail(row).data)


class VerifyLog(OwnersView):
    reading, writing = KeyScope.AUDIT_READ, KeyScope.AUDIT_READ

    @extend_schema(
        operation_id="audit_verify", tags=["audit"], request=None, responses={200: VerificationOfLog, **_REFUSALS}
    )
    def post(self, request: Request) -> Response:
        """Check the whole log from its first entry."""
        return uncached(VerificationOfLog(verify_chain(chain_of(self.caller.tenant_id))).data)


class ExportLog(OwnersView):
    reading, writing = KeyScope.AUDIT_READ, KeyScope.AUDIT_READ

    @extend_schema(
        operation_id="audit_export",
        tags=["audit"],
        request=None,
        responses={(200, "application/jsonl"): OpenApiTypes.BINARY, **_REFUSALS},
    )
    def post(self, request: Request) -> HttpResponse:
        """Export the log as a bundle that anyone can check with `tools/verify_audit.py`, with a fresh checkpoint."""
        chain = chain_of(self.caller.tenant_id)
        headers = {
            "Content-Disposition": f'attachment; filename="audit-{chain.name}.jsonl"',
            "Cache-Control": "no-store",
        }
        return HttpResponse(export_chain(chain), content_type="application/jsonl", headers=headers)
