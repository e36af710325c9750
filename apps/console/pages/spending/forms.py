"""The form with which owners set a limit on spending."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.guard import rules
from apps.guard.enums import Holder, Period
from apps.tenants.models import Deployment

_COMPANY = "company"


class LimitForm(forms.Form):
    """What the company or one chatbot may spend a day or a month; `values` is what `set_budget` takes."""

    whose = forms.ChoiceField(label=_("Applies to"))
    period = forms.ChoiceField(label=_("Per"), choices=[(Period.DAY, _("Day")), (Period.MONTH, _("Month"))])
    limit_usd = forms.DecimalField(
        label=_("Limit in US dollars"), min_value=Decimal(0), max_value=rules.MAX_USD, decimal_places=rules.DIGITS
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chatbots = [(str(pk), title) for pk, title in Deployment.objects.order_by("title").values_list("pk", "title")]
        self.fields["whose"] = forms.ChoiceField(
            label=_("Applies to"), choices=[(_COMPANY, _("The company")), *chatbots]
        )

    @property
    def values(self) -> dict[str, Any]:
        whose = self.cleaned_data["whose"]
        holder = {} if whose == _COMPANY else {"holder": Holder.DEPLOYMENT, "ref": UUID(whose)}
        return {"period": Period(self.cleaned_data["period"]), "limit_usd": self.cleaned_data["limit_usd"], **holder}
