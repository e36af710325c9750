"""WhatsApp by Meta's Cloud API: a business number that people write to.

Calls are signed with the app's secret over their exact bytes. Free text may be sent for 24 hours after a person wrote;
later an approved template takes its place, and what it has no room for follows as soon as they answer. A person with a
hidden number is known by the ID that Meta gives them for this business.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import mimetypes
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote, urlsplit

from django.http import HttpRequest, HttpResponse

from apps.messengers.client import (
    FILE_SECONDS,
    MOST_FILE_BYTES,
    RENEWAL_SECONDS,
    Answer,
    Errors,
    api_address,
    call,
    download,
    problem_of,
    refusal,
    send_in_order,
)
from apps.messengers.enums import ChannelKind, MessageState
from apps.messengers.formatting import PLAIN, Style, numbered, pieces, render, whole_text
from apps.messengers.ports import (
    Adapter,
    Inbound,
    InboundFile,
    NotSent,
    Outbound,
    OutboundOption,
    Place,
    Receipt,
    Received,
    Sent,
    Setting,
)
from kernel.language import gettext, in_language
from kernel.language import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

# Meta's 24 hours, less what a message may wait on its way.
_WINDOW_SECONDS = 24 * 3600 - 60
_MOST_BUTTONS, _BUTTON, _MOST_ROWS, _ROW, _ROW_MORE, _QUESTION = 3, 20, 10, 24, 72, 1024
_TEMPLATE_TEXT, _MOST_MISSED = 1000, 5
_FILES = ("image", "document", "audio", "video", "sticker")
_IGNORED = ("reaction", "system")
_MEDIA_HOSTS = (".fbsbx.com", ".facebook.com", ".whatsapp.net")
_STATES = {
    "sent": MessageState.SENT,
    "delivered": MessageState.DELIVERED,
    "read": MessageState.READ,
    "failed": MessageState.FAILED,
}
_TEMPLATE_TAKES_NO_TEXT = "template_parameters"
# Meta's error codes, of answers and of receipts.
_ERRORS: Errors = {
    0: ("unauthorized", RENEWAL_SECONDS),
    1: ("unavailable", 15),
    2: ("unavailable", 15),
    3: ("not_permitted", RENEWAL_SECONDS),
    4: ("rate_limited", 600),
    10: ("not_permitted", RENEWAL_SECONDS),
    190: ("unauthorized", RENEWAL_SECONDS),
    368: ("account_locked", None),
    80007: ("rate_limited", 600),
    130429: ("rate_limited", 30),
    130472: ("undeliverable", None),
    131000: ("unavailable", 15),
    131005: ("not_permitted", RENEWAL_SECONDS),
    131016: ("unavailable", 15),
    131021: ("bad_recipient", None),
    131026: ("undeliverable", None),
    131030: ("bad_recipient", None),
    131031: ("account_locked", None),
    131042: ("payment_problem", RENEWAL_SECONDS),
    131047: ("window_closed", None),
    131048: ("rate_limited", 3600),
    131049: ("undeliverable", None),
    131051: ("not_supported", None),
    131052: ("file_refused", None),
    131053: ("file_refused", None),
    131056: ("rate_limited", 60),
    131057: ("unavailable", 600),
    132000: (_TEMPLATE_TAKES_NO_TEXT, None),
    132001: ("template_missing", None),
    132005: ("template_refused", None),
    132007: ("template_refused", None),
    132012: ("template_refused", None),
    132015: ("template_paused", None),
    132016: ("template_refused", None),
}

STYLE = Style(
    {
        "strong": ("*", "*"),
        "em": ("_", "_"),
        "code": ("`", "`"),
        "pre": ("```\n", "\n```"),
        "blockquote": ("> ", ""),
    }
)


class WhatsAppAdapter(Adapter):
    kind = ChannelKind.WHATSAPP
    settings: ClassVar[Sequence[Setting]] = (
        Setting("phone_number_id", _("Phone number ID"), help=_("Under WhatsApp > API Setup; not the number itself")),
        Setting("token", _("Access token"), help=_("A permanent one, of a system user"), secret=True),
        Setting("app_secret", _("App secret"), help=_("Under App settings > Basic"), secret=True),
        Setting("verify_token", _("Verify token"), help=_("A word of your choice, entered at Meta too"), secret=True),
        Setting(
            "template",
            _("Template"),
            help=_("An approved one, sent when the person last wrote more than 24 hours ago"),
            required=False,
        ),
        Setting("template_language", _("Language of the template"), required=False, default="en"),
    )
    longest_text = 4096
    opt_out_words = frozenset({"stop", "unsubscribe"})
    opt_in_words = frozenset({"start"})

    def check(self, settings: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, StrOrPromise]:
        number = settings.get("phone_number_id", "")
        if not re.fullmatch(r"[0-9]{5,20}", number):
            return {"phone_number_id": _("This is a number of 5 to 20 digits.")}
        return {}

    def steps(self, settings: Mapping[str, object], webhook: str) -> Sequence[StrOrPromise]:
        return (
            gettext("At developers.facebook.com, create an app of the type Business and add WhatsApp."),
            gettext("Copy the phone number ID, the app secret and a permanent access token here."),
            gettext("Under WhatsApp > Configuration, enter this callback URL and your verify token: {url}").format(
                url=webhook
            ),
            gettext("Subscribe to the field messages there, and choose Check connection here."),
        )

    async def connect(self, place: Place, webhook: str) -> Mapping[str, object]:
        fields = {"fields": "display_phone_number,verified_name"}
        told = await _ask("GET", place, place.settings["phone_number_id"], query=fields)
        return {
            "number": str(told.get("display_phone_number", "")),
            "verified_name": str(told.get("verified_name", "")),
        }

    def receive(self, request: HttpRequest, body: bytes, place: Place) -> Received:
        if request.method == "GET":
            return Received(answer=_challenge(request, place.secrets["verify_token"]))
        given = request.headers.get("X-Hub-Signature-256", "")
        if not hmac.compare_digest(given.encode(), signature(place.secrets["app_secret"], body).encode()):
            raise PermissionError("the signature is wrong")
        told = json.loads(body)
        if told["object"] != "whatsapp_business_account":
            raise ValueError("not a call about WhatsApp")
        messages: list[Inbound] = []
        receipts: list[Receipt] = []
        for value in _values(told, place):
            names = {_who(each): str((each.get("profile") or {}).get("name", "")) for each in value.get("contacts", ())}
            messages += [_inbound(each, names) for each in value.get("messages", ()) if each["type"] not in _IGNORED]
            receipts += [_receipt(each) for each in value.get("statuses", ()) if each["status"] in _STATES]
        return Received(messages, receipts)

    async def fetch(self, place: Place, message: Inbound) -> Inbound:
        return replace(message, files=tuple([await _fetched(place, file) for file in message.files]))

    async def send(self, place: Place, message: Outbound) -> Sent:
        if place.open_for is None or place.open_for > _WINDOW_SECONDS:
            return await _send_template(place, message)
        missed = [_text_part(text) for text in place.reference.get("missed") or ()]
        parts = [await _file_part(place, message)] if message.file else _parts(message, self.longest_text)
        try:
            sent = await send_in_order(place, message.once, [*missed, *parts], lambda part: _post(place, part))
        except NotSent as refused:
            if refused.code != "window_closed" or not place.settings.get("template"):
                raise
            return await _send_template(place, message)
        return replace(sent, reference={**sent.reference, "missed": []}) if missed else sent


def signature(secret: str, body: bytes) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


# -- in ----------------------------------------------------------------------------------------------------------------


def _challenge(request: HttpRequest, token: str) -> HttpResponse:
    """The answer to Meta's check of the address. Raises `PermissionError` for another token."""
    given, challenge = request.GET.get("hub.verify_token", ""), request.GET.get("hub.challenge", "")
    if request.GET.get("hub.mode") != "subscribe" or not hmac.compare_digest(given.encode(), token.encode()):
        raise PermissionError("the verify token is wrong")
    # It is sent back as it came, and must not become markup in a browser (reflected XSS).
    if not re.fullmatch(r"[0-9A-Za-z_-]{1,200}", challenge):
        raise ValueError("the challenge is none of Meta's")
    return HttpResponse(challenge, content_type="text/plain")


def _values(told: Mapping[str, Any], place: Place) -> Iterator[Mapping[str, Any]]:
    """What a call says of this channel's number; an app has one address for all of its numbers."""
    for entry in told["entry"]:
        for change in entry["changes"]:
            value = change["value"]
            if (
                change["field"] == "messages"
                and value["metadata"]["phone_number_id"] == place.settings["phone_number_id"]
            ):
                yield value


def _who(told: Mapping[str, object], number: str = "wa_id", user: str = "user_id") -> str:
    """The person's number, or the ID that stands for one who hides it."""
    digits = str(told.get(number) or "")
    return f"+{int(digits)}" if digits else str(told[user])


def _inbound(message: Mapping[str, Any], names: Mapping[str, str]) -> Inbound:
    who, kind = _who(message, "from", "from_user_id"), str(message["type"])
    content = message.get(kind)
    content = content if isinstance(content, dict) else {}
    files: list[InboundFile] = []
    text = choice = ""
    match kind:
        case "text":
            text = str(content["body"])
        case "button":
            text = str(content["text"])
        case "interactive":
            choice = str((content.get("button_reply") or content.get("list_reply") or {}).get("id", ""))
        case "location":
            text = f"{float(content['latitude'])}, {float(content['longitude'])}"
        case "contacts":
            text = "\n".join(map(_contact, message["contacts"]))
        case _ if kind in _FILES:
            text = str(content.get("caption", ""))
            ending = mimetypes.guess_extension(str(content.get("mime_type", "")).partition(";")[0]) or ""
            files = [InboundFile(str(content.get("filename") or f"{kind}{ending}"), ref=str(content["id"]))]
    return Inbound(
        external_id=str(message["id"]),
        key=who,
        peer=who,
        sender=who,
        text=text,
        choice=choice,
        name=names.get(who, ""),
        files=files,
    )


def _contact(told: Mapping[str, Any]) -> str:
    numbers = [str(each.get("phone", "")) for each in told.get("phones") or ()]
    return " ".join([str((told.get("name") or {}).get("formatted_name", "")), *numbers]).strip()


def _receipt(status: Mapping[str, Any]) -> Receipt:
    problem = ""
    if errors := status.get("errors"):
        problem = problem_of(int(errors[0]["code"]), _ERRORS)
    return Receipt(str(status["id"]), _STATES[status["status"]], problem)


async def _fetched(place: Place, file: InboundFile) -> InboundFile:
    """The file with its bytes; without them if it is too large or gone. Raises `NotSent` where another attempt may
    succeed."""
    try:
        told = await _ask("GET", place, quote(file.ref, safe=""))
        url = str(told.get("url", ""))
        # The token goes with the request: it is given to Meta only.
        if int(told.get("file_size") or 0) > MOST_FILE_BYTES or not _is_metas(url):
            return InboundFile(file.name)
    except NotSent as refused:
        if refused.retry_after is not None:
            raise
        return InboundFile(file.name)
    return await download(file, url, headers=_authorized(place))


def _is_metas(url: str) -> bool:
    """Whether the access token may be sent there."""
    parts, own = urlsplit(url), urlsplit(_base())
    if (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
        return True
    return parts.scheme == "https" and parts.netloc.endswith(_MEDIA_HOSTS)


# -- out ---------------------------------------------------------------------------------------------------------------


def _parts(message: Outbound, most: int) -> list[dict[str, object]]:
    """A text in pieces; its options at the last one, as buttons, as a list or as lines."""
    text, options = whole_text(message), message.options
    if not options or not _are_pressable(options):
        return [_text_part(piece) for piece in pieces(numbered(text, options, language=message.language), most)]
    with in_language(message.language):
        *before, question = [text] if len(text) <= _QUESTION else [*pieces(text, most), gettext("Please choose:")]
        action = _buttons(options) if _are_buttons(options) else _list(options)
    interactive = {**action, "body": {"text": render(question, STYLE)}}
    return [*map(_text_part, before), {"type": "interactive", "interactive": interactive}]


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": {"body": render(text, STYLE), "preview_url": False}}


def _are_pressable(options: Sequence[OutboundOption]) -> bool:
    return len(options) <= _MOST_ROWS and all(len(each.label) <= _ROW_MORE for each in options)


def _are_buttons(options: Sequence[OutboundOption]) -> bool:
    labels = {each.label for each in options}
    return len(labels) == len(options) <= _MOST_BUTTONS and all(len(label) <= _BUTTON for label in labels)


def _buttons(options: Sequence[OutboundOption]) -> dict[str, object]:
    buttons = [{"type": "reply", "reply": {"id": each.choice, "title": each.label}} for each in options]
    return {"type": "button", "action": {"buttons": buttons}}


def _list(options: Sequence[OutboundOption]) -> dict[str, object]:
    rows = [
        {"id": each.choice, "title": each.label}
        if len(each.label) <= _ROW
        else {"id": each.choice, "title": f"{each.label[: _ROW - 1]}…", "description": each.label}
        for each in options
    ]
    return {"type": "list", "action": {"button": gettext("Choose")[:_BUTTON], "sections": [{"rows": rows}]}}


async def _file_part(place: Place, message: Outbound) -> dict[str, object]:
    file = message.file
    assert file is not None
    url = f"{_base()}/{place.settings['phone_number_id']}/media"
    answer = await call(
        "POST",
        url,
        headers=_authorized(place),
        form={"messaging_product": "whatsapp", "type": file.mime},
        files={"file": (file.name, file.content, file.mime)},
        judged=range(400, 600),
        seconds=FILE_SECONDS,
    )
    media = str(_checked(answer)["id"])
    return {"type": "document", "document": {"id": media, "filename": file.name}}


async def _send_template(place: Place, message: Outbound) -> Sent:
    """Send the template in place of the message, with its text if it has room for one; otherwise the text waits for the
    person's answer, and no second template is sent until then. Raises `NotSent`."""
    name = place.settings.get("template")
    if not name:
        raise NotSent("window_closed")
    text = numbered(whole_text(message), message.options, language=message.language)
    missed = list(place.reference.get("missed") or ())
    waiting = {"missed": [*missed, text[:4000]][-_MOST_MISSED:]}
    if missed:
        return Sent("", waiting)
    template = {"name": name, "language": {"code": place.settings.get("template_language") or "en"}}
    shown = " ".join(render(text[:4000], PLAIN).split())
    body = {"type": "body", "parameters": [{"type": "text", "text": shown[:_TEMPLATE_TEXT]}]}
    try:
        sent = await _post(place, {"type": "template", "template": {**template, "components": [body]}})
    except NotSent as refused:
        if refused.code != _TEMPLATE_TAKES_NO_TEXT:
            raise
        return Sent(await _post(place, {"type": "template", "template": template}), waiting)
    return Sent(sent, waiting if len(shown) > _TEMPLATE_TEXT else {})


async def _post(place: Place, part: Mapping[str, object]) -> str:
    to = {"to": place.peer} if place.peer.startswith("+") else {"recipient": place.peer}
    body = {"messaging_product": "whatsapp", "recipient_type": "individual", **to, **part}
    told = await _ask("POST", place, f"{place.settings['phone_number_id']}/messages", body=body)
    return str((told.get("messages") or [{}])[0].get("id", ""))


async def _ask(
    method: str,
    place: Place,
    path: str,
    *,
    body: Mapping[str, object] | None = None,
    query: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    tail = "?" + "&".join(f"{name}={quote(value)}" for name, value in query.items()) if query else ""
    answer = await call(
        method, f"{_base()}/{path}{tail}", headers=_authorized(place), body=body, judged=range(400, 600)
    )
    return _checked(answer)


def _checked(answer: Answer) -> dict[str, object]:
    """The object that Meta answered with. Raises `NotSent` with what its error code means."""
    told = answer.json()
    if answer.status == 200 and told and "error" not in told:
        return told
    error = told.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    if not isinstance(code, int) and answer.status < 500:
        raise NotSent(f"http_{answer.status}", retry_after=60)  # not Meta's own answer
    raise refusal(answer, code, _ERRORS)


def _authorized(place: Place) -> dict[str, str]:
    return {"Authorization": f"Bearer {place.secrets['token']}"}


def _base() -> str:
    return api_address(ChannelKind.WHATSAPP, "https://graph.facebook.com/v25.0")
