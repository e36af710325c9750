"""REST API of inbox rules (contract interfaces, HTTP).

For owners in the console's session, and API keys with the scopes `settings:read` and `settings:write`.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.inbox import inbox_rules
from apps.inbox.api import StaffView
from apps.inbox.enums import ConditionField, ConditionOperator, Do, RuleMatch, RuleTrigger
from apps.inbox.inbox_rule_conditions import MAX_CONDITIONS, MAX_TEXT, Subjects
from apps.inbox.inbox_rules import MAX_MINUTES, MAX_NAME, MAX_POSITION, RuleFields
from apps.inbox.models import InboxRule
from apps.inbox.steps import MAX_STEPS, Names
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
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope

_SAVE_REFUSALS: dict[int, OpenApiResponse] = {
    **RESOURCE_REFUSALS,
    400: OpenApiResponse(
        description="`invalid`, `bad_name`, `bad_rule`, `bad_steps`, `invalid_text`: a field is wrong"
    ),
    409: OpenApiResponse(description="`name_taken`; `too_many`"),
}


class RuleCondition(serializers.Serializer[object]):
    field = serializers.ChoiceField(choices=ConditionField.values)
    operator = serializers.ChoiceField(
        choices=ConditionOperator.values, help_text="`contains` and `contains_not` for a text, the others for the rest"
    )
    value = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=MAX_TEXT,
        help_text="An id, a channel or `widget`, two letters of a language, `yes`, `no`, `open`, `closed` or a text;"
        " an empty team is none",
    )


class RuleStep(serializers.Serializer[object]):
    do = serializers.ChoiceField(choices=[each.value for each in Do if each != Do.TAKE_OVER])
    value = serializers.CharField(
        default="", allow_blank=True, max_length=4000, help_text="An id, a choice or a text; an empty one unassigns"
    )


class InboxRuleAnswer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    is_active = serializers.BooleanField()
    position = serializers.IntegerField(help_text="Rules with a smaller number run first")
    trigger = serializers.ChoiceField(choices=RuleTrigger.values)
    minutes = serializers.IntegerField(help_text="How long the visitor has waited; 0 for other triggers")
    match = serializers.ChoiceField(choices=RuleMatch.values)
    conditions = RuleCondition(many=True)
    steps = RuleStep(many=True)
    version = serializers.IntegerField(help_text="Another one after every change")
    problem = serializers.CharField(help_text="Why the rule does nothing; empty if it can run")


class InboxRulesAnswer(serializers.Serializer[object]):
    inbox_rules = InboxRuleAnswer(many=True)


class InboxRuleRequest(RequestSerializer):
    name = serializers.CharField(max_length=MAX_NAME)
    is_active = serializers.BooleanField(required=False, help_text="Off unless you say otherwise")
    position = serializers.IntegerField(required=False, min_value=1, max_value=MAX_POSITION)
    trigger = serializers.ChoiceField(choices=RuleTrigger.values)
    minutes = serializers.IntegerField(
        required=False, min_value=0, max_value=MAX_MINUTES, help_text="For the trigger `waiting`"
    )
    match = serializers.ChoiceField(choices=RuleMatch.values, required=False)
    conditions = serializers.ListField(child=RuleCondition(), required=False, max_length=MAX_CONDITIONS)
    steps = serializers.ListField(child=RuleStep(), min_length=1, max_length=MAX_STEPS)


class InboxRuleChange(InboxRuleRequest):
    """What is not named stays."""

    name = serializers.CharField(max_length=MAX_NAME, required=False)
    trigger = serializers.ChoiceField(choices=RuleTrigger.values, required=False)
    steps = serializers.ListField(child=RuleStep(), min_length=1, max_length=MAX_STEPS, required=False)


class _RuleView(StaffView):
    """All members may read; the services refuse changes to those who are not owners."""

    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE


class InboxRules(_RuleView):
    @extend_schema(
        operation_id="inbox_rules_list", tags=["inbox-rules"], responses={200: InboxRulesAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """List all inbox rules in the order in which they run."""
        with tenant_scope(self.caller.tenant_id):
            names, subjects = Names(), Subjects()
            rules = [_shown(rule, names, subjects) for rule in inbox_rules.inbox_rules()]
            return uncached(InboxRulesAnswer({"inbox_rules": rules}).data)

    @extend_schema(
        operation_id="inbox_rules_create",
        tags=["inbox-rules"],
        request=InboxRuleRequest,
        responses={201: InboxRuleAnswer, **_SAVE_REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Create an inbox rule; it is off unless `is_active` is true."""
        values = validated(InboxRuleRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            return with_etag(_answer(inbox_rules.save_rule(self.staff, RuleFields(**values))), status.HTTP_201_CREATED)


class OneInboxRule(_RuleView):
    @extend_schema(
        operation_id="inbox_rules_get", tags=["inbox-rules"], responses={200: InboxRuleAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request, rule_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return with_etag(_answer(inbox_rules.inbox_rule(rule_id)))

    @extend_schema(
        operation_id="inbox_rules_edit",
        tags=["inbox-rules"],
        request=InboxRuleChange,
        parameters=[IF_MATCH],
        responses={200: InboxRuleAnswer, **_SAVE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def patch(self, request: Request, rule_id: UUID) -> Response:
        """Change the named fields of a rule, such as `is_active`."""
        values = validated(InboxRuleChange, request.data)
        with tenant_scope(self.caller.tenant_id):
            rule = self._unchanged(request, rule_id)
            fields = replace(inbox_rules.fields_of(rule), **values)
            return with_etag(_answer(inbox_rules.save_rule(self.staff, fields, rule_id=rule_id)))

    @extend_schema(
        operation_id="inbox_rules_delete",
        tags=["inbox-rules"],
        parameters=[IF_MATCH],
        responses={204: None, **RESOURCE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def delete(self, request: Request, rule_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            self._unchanged(request, rule_id)
            inbox_rules.delete_rule(self.staff, rule_id)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _unchanged(self, request: Request, rule_id: UUID) -> InboxRule:
        rule = inbox_rules.lock_rule(self.staff, rule_id)
        require_unchanged(request, _answer(rule))
        return rule


def _answer(rule: InboxRule) -> Any:
    return InboxRuleAnswer(_shown(rule, Names(), Subjects())).data


def _shown(rule: InboxRule, names: Names, subjects: Subjects) -> dict[str, object]:
    facts = {"id": rule.pk, "version": rule.version, "problem": inbox_rules.problem_of(rule, names, subjects)}
    return facts | asdict(inbox_rules.fields_of(rule))
