"""Gates from templates: a form for each common kind of gate, with a sentence that says what the gate will do.

A template is a form whose input becomes a `GateSpec`. An existing gate is edited with the template that reproduces it
exactly (`template_of`), so that saving without a change writes nothing. Gates store no template's name: those of goals
and of the API have none, and a gate that was changed there would open in a form that drops what it cannot show. A gate
that no template can show is left to the administration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from django import forms
from django.utils.functional import Promise
from pydantic import ValidationError as SpecError

from apps.gates.detectors.catalogue import TOPICS
from apps.gates.detectors.pii import KINDS
from apps.gates.differences import ON_BLOCK
from apps.gates.enums import GateProvider, GateTrigger, GateType
from apps.gates.models import GateVersion
from apps.gates.schemas import GateSpec
from apps.gates.services.versions import LONGEST_NOTE
from apps.gates.validation import problems_of
from kernel.language import gettext, gettext_lazy, ngettext

_MESSAGES = {
    GateTrigger.EVERY_USER_MESSAGE: gettext_lazy("Messages of visitors"),
    GateTrigger.EVERY_AGENT_RESPONSE: gettext_lazy("Answers of the bot"),
}
_TOPICS = {
    "medical": gettext_lazy("Medical advice"),
    "legal": gettext_lazy("Legal advice"),
    "investment": gettext_lazy("Investment advice"),
    "politics": gettext_lazy("Politics"),
}
_DETECTORS = {
    "jailbreak": gettext_lazy("Attempts to change the bot's instructions"),
    "toxicity": gettext_lazy("Insults and threats"),
    "secrets": gettext_lazy("Passwords and keys"),
}


class TemplateForm(forms.Form):
    """What all templates share. After `is_valid`, `spec` is the gate."""

    key: ClassVar[str]
    title: ClassVar[Promise]
    about: ClassVar[Promise]
    sample_label: ClassVar[Promise | None] = gettext_lazy("Text to try")
    asks_model: ClassVar[bool] = False
    # The field that shows the problems of the gate's settings.
    settings_field: ClassVar[str | None] = None
    # Where the gate stands; None if the form asks.
    trigger: ClassVar[GateTrigger | None] = None

    name = forms.RegexField(
        r"^[A-Za-z0-9_.-]{1,80}$",
        label=gettext_lazy("Name"),
        error_messages={"invalid": gettext_lazy("Use letters, digits, dots, _ and - only.")},
    )
    on_block = forms.ChoiceField(label=gettext_lazy("If it fails"), choices=list(ON_BLOCK.items()), initial="report")
    order = forms.IntegerField(widget=forms.HiddenInput, initial=100, min_value=0, max_value=32_767)
    note = forms.CharField(label=gettext_lazy("Reason for this change"), required=False, max_length=LONGEST_NOTE)
    seen = forms.IntegerField(widget=forms.HiddenInput, initial=0, min_value=0)

    spec: GateSpec
    named = ""

    def __init__(
        self, *args: Any, escalation: str = "", known_tools: Collection[str] | None = None, **kwargs: Any
    ) -> None:
        """`escalation` is the name of an escalation of the goal that the gate already has; `known_tools` are those that
        it may name, None for any."""
        super().__init__(*args, **kwargs)
        self.known_tools = known_tools
        field = self.fields["on_block"]
        assert isinstance(field, forms.ChoiceField)
        if escalation and escalation not in ON_BLOCK:
            field.choices = [*ON_BLOCK.items(), (escalation, escalation)]
        own = [name for name in self.fields if name not in TemplateForm.base_fields]
        self.order_fields([*own, "name", "on_block", "note", "order", "seen"])

    def keep_name(self, name: str) -> None:
        """Gates are not renamed."""
        self.fields.pop("name", None)
        self.named = name

    def content(self, values: Mapping[str, Any]) -> dict[str, object]:
        """The fields of the gate that are this template's own."""
        raise NotImplementedError

    @classmethod
    def values_of(cls, spec: GateSpec) -> dict[str, object]:
        """The template's own input that may reproduce a gate; checked by `template_of`."""
        raise NotImplementedError

    def sentence(self) -> str:
        """What the gate will do."""
        raise NotImplementedError

    def sample_context(self, sample: str) -> dict[str, object]:
        """The context in which a typed sample is checked."""
        return {"message": sample, "response": sample}

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        fields = {
            "name": cleaned.get("name") or self.named,
            "on": self.trigger or cleaned["on"],
            "on_block": cleaned["on_block"],
        }
        try:
            self.spec = GateSpec(**fields, **self.content(cleaned))
        except SpecError as wrong:
            self._add_problem("config", wrong.errors()[0]["msg"].removeprefix("Value error, "))
            return cleaned
        for field, problem in problems_of(self.spec).items():
            self._add_problem(field, problem)
        return cleaned

    def _add_problem(self, field: str, problem: str) -> None:
        name = field if field in self.fields else self.settings_field
        self.add_error(name, f"{problem[:1].upper()}{problem[1:]}.")


class ToolsForm(TemplateForm):
    """A template that checks the use of some tools."""

    trigger = GateTrigger.ON_TOOL_CALL
    settings_field = "tools"

    tools = forms.CharField(
        label=gettext_lazy("Tools"),
        help_text=gettext_lazy("Separated by commas"),
        max_length=2000,
        widget=forms.TextInput(attrs={"list": "known-tools"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.known_tools:
            self.fields["tools"].help_text = gettext("Separated by commas. Available: {tools}").format(
                tools=", ".join(self.known_tools)
            )

    def clean_tools(self) -> str:
        text: str = self.cleaned_data["tools"]
        unknown = [] if self.known_tools is None else [one for one in _listed(text) if one not in self.known_tools]
        if unknown:
            message = ngettext("There is no tool named {names}.", "There are no tools named {names}.", len(unknown))
            raise forms.ValidationError(message.format(names=", ".join(unknown)))
        return text


class LimitForm(ToolsForm):
    key = "limit"
    title = gettext_lazy("Number limit")
    about = gettext_lazy("For example, refunds up to 50 are allowed, and refunds up to 500 need approval.")
    sample_label = gettext_lazy("Number to try")

    extract = forms.CharField(
        label=gettext_lazy("Value"),
        help_text=gettext_lazy("The argument of the tool that is limited"),
        initial="amount",
        max_length=80,
    )
    allowed = forms.FloatField(label=gettext_lazy("Allowed up to"), min_value=0)
    approval = forms.FloatField(label=gettext_lazy("Needs approval up to"), min_value=0, required=False)

    def content(self, values: Mapping[str, Any]) -> dict[str, object]:
        allowed, approval = values["allowed"], values["approval"]
        return {
            "type": GateType.NUMERIC_RANGE,
            "extract": values["extract"],
            "config": {"tools": _listed(values["tools"])},
            "auto_approve": {"min": 0, "max": allowed},
            "require_approval": None if approval is None else {"min": allowed, "max": approval},
        }

    def clean_approval(self) -> float | None:
        approval: float | None = self.cleaned_data["approval"]
        allowed = self.cleaned_data.get("allowed")
        if approval is not None and allowed is not None and approval <= allowed:
            raise forms.ValidationError(gettext("Enter a number above the allowed one."))
        return approval

    @classmethod
    def values_of(cls, spec: GateSpec) -> dict[str, object]:
        asks = spec.require_approval
        return {
            "tools": ", ".join(spec.config.get("tools") or ()),
            "extract": spec.extract,
            "allowed": spec.auto_approve.max if spec.auto_approve else None,
            "approval": asks.max if asks else None,
        }

    def sentence(self) -> str:
        values = self.cleaned_data
        named = {
            "tools": ", ".join(_listed(values["tools"])),
            "value": values["extract"],
            "allowed": f"{values['allowed']:g}",
        }
        if values["approval"] is None:
            only = gettext("{tools} is allowed with {value} from 0 to {allowed}. Anything else is blocked.")
            return only.format(**named)
        return gettext(
            "{tools} is allowed with {value} from 0 to {allowed} and needs approval up to {approval}. "
            "Anything else is blocked."
        ).format(**named, approval=f"{values['approval']:g}")

    def sample_context(self, sample: str) -> dict[str, object]:
        names = _listed(self.cleaned_data["tools"])
        return {"tool_name": names[0], "tool_args": {self.cleaned_data["extract"]: sample}}


class ApprovalForm(ToolsForm):
    key = "approval"
    title = gettext_lazy("Tool needs approval")
    about = gettext_lazy("A person approves every use of a tool.")
    sample_label = None

    def content(self, values: Mapping[str, Any]) -> dict[str, object]:
        return {
            "type": GateType.APPROVAL_ALWAYS,
            "config": {"tools": _listed(values["tools"])},
        }

    @classmethod
    def values_of(cls, spec: GateSpec) -> dict[str, object]:
        return {"tools": ", ".join(spec.config.get("tools") or ())}

    def sentence(self) -> str:
        return gettext("Every use of {tools} needs approval.").format(
            tools=", ".join(_listed(self.cleaned_data["tools"]))
        )


class TextForm(TemplateForm):
    """A template that checks messages or answers."""

    on = forms.ChoiceField(
        label=gettext_lazy("Checks"), choices=list(_MESSAGES.items()), initial=GateTrigger.EVERY_AGENT_RESPONSE
    )

    def says(self, sentence: str, **named: object) -> str:
        """The sentence with the place where the gate stands."""
        return sentence.format(place=_MESSAGES[GateTrigger(self.cleaned_data["on"])], **named)


class WordsForm(TextForm):
    key = "words"
    title = gettext_lazy("Blocked words")
    about = gettext_lazy("For example, the names of competitors.")
    settings_field = "words"

    words = forms.CharField(
        label=gettext_lazy("Words"),
        help_text=gettext_lazy("One per line. They are found as whole words"),
        widget=forms.Textarea(attrs={"rows": 4}),
    )

    def content(self, values: Mapping[str, Any]) -> dict[str, object]:
        config = {"blocked_keywords": _lines(values["words"])}
        return {"type": GateType.CUSTOM_CHECK, "config": config}

    @classmethod
    def values_of(cls, spec: GateSpec) -> dict[str, object]:
        return {"words": "\n".join(spec.config.get("blocked_keywords") or ())}

    def sentence(self) -> str:
        count = len(_lines(self.cleaned_data["words"]))
        return self.says(
            gettext("{place}: a text with a blocked word is blocked. Words in the list: {count}."), count=count
        )


class LengthForm(TextForm):
    key = "length"
    title = gettext_lazy("Length")
    about = gettext_lazy("Texts above a number of characters are blocked.")
    settings_field = "most"

    most = forms.IntegerField(label=gettext_lazy("Characters at most"), min_value=1, max_value=50_000, initial=2000)

    def content(self, values: Mapping[str, Any]) -> dict[str, object]:
        return {"type": GateType.CUSTOM_CHECK, "config": {"max_chars": values["most"]}}

    @classmethod
    def values_of(cls, spec: GateSpec) -> dict[str, object]:
        return {"most": spec.config.get("max_chars")}

    def sentence(self) -> str:
        return self.says(
            gettext("{place}: a text with more than {count} characters is blocked."), count=self.cleaned_data["most"]
        )


class PatternForm(TextForm):
    key = "pattern"
    title = gettext_lazy("Pattern")
    about = gettext_lazy("A regular expression must be found in the text.")
    settings_field = "pattern"

    pattern = forms.CharField(label=gettext_lazy("Regular expression"), max_length=2000, strip=False)

    def content(self, values: Mapping[str, Any]) -> dict[str, object]:
        return {"type": GateType.REGEX, "config": {"pattern": values["pattern"]}}

    @classmethod
    def values_of(cls, spec: GateSpec) -> dict[str, object]:
        return {"pattern": spec.config.get("pattern")}

    def sentence(self) -> str:
        return self.says(
            gettext("{place}: a text in which {pattern} is not found is blocked."), pattern=self.cleaned_data["pattern"]
        )


class PersonalDataForm(TextForm):
    key = "personal-data"
    title = gettext_lazy("Personal data")
    about = gettext_lazy("For example, names, email addresses and card numbers.")
    settings_field = "entities"

    entities = forms.MultipleChoiceField(
        label=gettext_lazy("Kinds"),
        choices=[(kind, kind.replace("_", " ").lower()) for kind in KINDS],
        widget=forms.CheckboxSelectMultiple,
        initial=list(KINDS),
    )
    removes = forms.BooleanField(label=gettext_lazy("Remove it instead of blocking the text"), required=False)

    def content(self, values: Mapping[str, Any]) -> dict[str, object]:
        config: dict[str, object] = {"entities": values["entities"]}
        if values["removes"]:
            config["on_fail"] = "fix"
        return _detector("pii", config)

    @classmethod
    def values_of(cls, spec: GateSpec) -> dict[str, object]:
        kinds = spec.config.get("entities") or []
        return {"entities": kinds, "removes": spec.config.get("on_fail") == "fix"}

    def sentence(self) -> str:
        if self.cleaned_data["removes"]:
            return self.says(gettext("{place}: personal data is removed from the text."))
        return self.says(gettext("{place}: a text with personal data is blocked."))


class TopicsForm(TextForm):
    key = "topics"
    title = gettext_lazy("Topics")
    about = gettext_lazy("The bot doesn't talk about selected topics.")
    settings_field = "topics"

    topics = forms.MultipleChoiceField(
        label=gettext_lazy("Topics"),
        choices=[(topic, _TOPICS[topic]) for topic in TOPICS],
        widget=forms.CheckboxSelectMultiple,
    )

    def content(self, values: Mapping[str, Any]) -> dict[str, object]:
        return _detector("topic", {"topics": values["topics"]})

    @classmethod
    def values_of(cls, spec: GateSpec) -> dict[str, object]:
        return {"topics": spec.config.get("topics") or []}

    def sentence(self) -> str:
        topics = ", ".join(str(_TOPICS[topic]) for topic in self.cleaned_data["topics"])
        return self.says(gettext("{place}: a text about one of these is blocked: {topics}."), topics=topics)


class LinksForm(TemplateForm):
    key = "links"
    trigger = GateTrigger.EVERY_AGENT_RESPONSE
    title = gettext_lazy("Links")
    about = gettext_lazy("Answers may only link to your own websites.")
    settings_field = "hosts"

    hosts = forms.CharField(
        label=gettext_lazy("Websites"),
        help_text=gettext_lazy("One per line, such as example.com. Their subdomains are included"),
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def content(self, values: Mapping[str, Any]) -> dict[str, object]:
        return _detector("markup", {"allowed_hosts": _lines(values["hosts"]), "threshold": 0.3})

    @classmethod
    def values_of(cls, spec: GateSpec) -> dict[str, object]:
        return {"hosts": "\n".join(spec.config.get("allowed_hosts") or ())}

    def sentence(self) -> str:
        return gettext("Answers with a link or image of another website than {hosts} are blocked.").format(
            hosts=", ".join(_lines(self.cleaned_data["hosts"]))
        )


class AttacksForm(TextForm):
    key = "attacks"
    title = gettext_lazy("Attacks and abuse")
    about = gettext_lazy("Manipulation of the bot, insults, or passwords and keys in a text.")

    check = forms.ChoiceField(label=gettext_lazy("Finds"), choices=list(_DETECTORS.items()))

    def content(self, values: Mapping[str, Any]) -> dict[str, object]:
        return _detector(values["check"], {})

    @classmethod
    def values_of(cls, spec: GateSpec) -> dict[str, object]:
        return {"check": spec.check}

    def sentence(self) -> str:
        return self.says(
            gettext("{place}: a text is blocked if this is found: {kind}."), kind=_DETECTORS[self.cleaned_data["check"]]
        )


class ModelForm(TextForm):
    key = "model"
    title = gettext_lazy("Tone and other rules for a model")
    about = gettext_lazy("A model judges each text by your description. It costs what models cost.")
    sample_label = None
    asks_model = True
    settings_field = "policy"

    policy = forms.CharField(
        label=gettext_lazy("Rule"),
        help_text=gettext_lazy("For example: The answer is friendly and makes no promises about delivery dates."),
        widget=forms.Textarea(attrs={"rows": 4}),
        max_length=2000,
    )
    promote_to_policy = forms.BooleanField(label=gettext_lazy("Model verdict is binding"), required=False)

    def content(self, values: Mapping[str, Any]) -> dict[str, object]:
        return {
            "provider": GateProvider.LLM,
            "config": {"policy": values["policy"]},
            "promote_to_policy": values["promote_to_policy"],
        }

    @classmethod
    def values_of(cls, spec: GateSpec) -> dict[str, object]:
        policy = spec.config.get("policy")
        return {"policy": policy, "promote_to_policy": spec.promote_to_policy}

    def sentence(self) -> str:
        if self.cleaned_data["promote_to_policy"]:
            return self.says(gettext("{place}: a model judges each text and can block it."))
        return self.says(gettext("{place}: a model rates each text. Nothing is blocked."))


TEMPLATES: Mapping[str, type[TemplateForm]] = {
    form.key: form
    for form in (
        LimitForm,
        ApprovalForm,
        WordsForm,
        PersonalDataForm,
        TopicsForm,
        LinksForm,
        AttacksForm,
        LengthForm,
        PatternForm,
        ModelForm,
    )
}


def template_of(version: GateVersion) -> tuple[type[TemplateForm], dict[str, object]] | None:
    """The template that reproduces this version exactly, with its input; None if there is none."""
    try:
        spec = version.to_spec()
    except SpecError:
        return None
    shared = {
        "name": spec.name,
        "on": spec.on,
        "on_block": spec.on_block,
        "order": version.order,
        "seen": version.gate.newest,
    }
    for form_class in TEMPLATES.values():
        values = {**form_class.values_of(spec), **shared}
        form = form_class(values, escalation=spec.on_block)
        # Exactly: a gate that the form shows only in part would lose the rest when it is saved.
        if form.is_valid() and form.spec == spec:
            return form_class, values
    return None


def _detector(check: str, config: dict[str, object]) -> dict[str, object]:
    return {
        "provider": GateProvider.CUSTOM,
        "type": GateType.CUSTOM_CHECK,
        "check": check,
        "config": config,
    }


def _listed(text: str) -> list[str]:
    return list(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))


def _lines(text: str) -> list[str]:
    return list(dict.fromkeys(filter(None, (line.strip() for line in text.splitlines()))))
