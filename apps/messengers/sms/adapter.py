"""Text messages by Twilio, or a provider with an interface of the same shape.

Calls are signed over the address as the provider knows it, which is kept when the channel is checked, and the form.
Questions are lines with numbers, files are named and not sent, and what is longer than three messages is cut.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qsl, urlencode

from django.http import HttpRequest, HttpResponse

from apps.contacts.enums import IdentityKind
from apps.contacts.rules import plain_phone
from apps.messengers.client import RENEWAL_SECONDS, Errors, api_address, call, problem_of, refusal, send_in_order
from apps.messengers.enums import ChannelKind, MessageState
from apps.messengers.formatting import PLAIN, numbered, pieces, render, whole_text
from apps.messengers.ports import (
    Adapter,
    Inbound,
    InboundFile,
    NotSent,
    Outbound,
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

_ACCOUNT = re.compile(r"[A-Za-z0-9-]{10,64}")
_SHORT_CODE = re.compile(r"[0-9]{3,8}")
_MOST_MESSAGES, _MOST_FILES = 3, 10
_STATES = {
    "sent": MessageState.SENT,
    "delivered": MessageState.DELIVERED,
    "read": MessageState.READ,
    "undelivered": MessageState.FAILED,
    "failed": MessageState.FAILED,
}
# Twilio's error codes, of answers and of receipts.
_ERRORS: Errors = {
    14107: ("rate_limited", 60),
    20003: ("unauthorized", RENEWAL_SECONDS),
    20429: ("rate_limited", 30),
    21211: ("bad_recipient", None),
    21217: ("bad_recipient", None),
    21408: ("region_off", None),
    21603: ("bad_sender", None),
    21606: ("bad_sender", None),
    21608: ("trial_account", None),
    21610: ("opted_out", None),
    21612: ("undeliverable", None),
    21614: ("bad_recipient", None),
    21617: ("too_large", None),
    21659: ("bad_sender", None),
    30001: ("rate_limited", 60),
    30003: ("undeliverable", None),
    30004: ("blocked", None),
    30005: ("bad_recipient", None),
    30006: ("bad_recipient", None),
    30007: ("filtered", None),
    30034: ("sender_not_registered", None),
}


class SmsAdapter(Adapter):
    kind = ChannelKind.SMS
    identity = IdentityKind.PHONE
    settings: ClassVar[Sequence[Setting]] = (
        Setting("number", _("Phone number"), help=_("With its country code, or a short code")),
        Setting("account_sid", _("Account SID"), help=_("Starts with AC")),
        Setting("token", _("Auth token"), secret=True),
    )
    longest_text = 1600
    sets_webhook = True
    # Twilio's own. "yes" opts in there too, and is left out: it answers the question for consent.
    opt_out_words = frozenset({"stop", "stopall", "unsubscribe", "cancel", "end", "quit", "revoke", "optout"})
    opt_in_words = frozenset({"start", "unstop"})

    def check(self, settings: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, StrOrPromise]:
        problems: dict[str, StrOrPromise] = {}
        if not _sender(settings["number"]):
            problems["number"] = _("Enter the number with its country code, such as +4930123456.")
        if not _ACCOUNT.fullmatch(settings["account_sid"]):
            problems["account_sid"] = _("This isn't an account SID.")
        return problems

    def steps(self, settings: Mapping[str, object], webhook: str) -> Sequence[StrOrPromise]:
        return (
            gettext("At Twilio, buy a number that can send and receive text messages."),
            gettext("Copy the number, the account SID and the auth token here."),
            gettext("Choose Check connection: Twilio is then told where to deliver messages."),
            gettext("If the number belongs to a messaging service, enter this address there: {url}").format(
                url=webhook
            ),
        )

    async def connect(self, place: Place, webhook: str) -> Mapping[str, object]:
        known = await _known_number(place)
        if known is None:
            raise NotSent("number_unknown")
        hook = {"SmsUrl": webhook, "SmsMethod": "POST", "SmsFallbackUrl": webhook, "SmsFallbackMethod": "POST"}
        await _ask("POST", place, f"IncomingPhoneNumbers/{known['sid']}.json", form=hook)
        return {"webhook": webhook}

    async def disconnect(self, place: Place) -> None:
        known = await _known_number(place)
        if known and str(known.get("sms_url") or "").endswith(f"/{place.public_id}"):
            none = {"SmsUrl": "", "SmsFallbackUrl": ""}
            await _ask("POST", place, f"IncomingPhoneNumbers/{known['sid']}.json", form=none)

    def receive(self, request: HttpRequest, body: bytes, place: Place) -> Received:
        form = parse_qsl(body.decode(), keep_blank_values=True)
        # Behind a proxy the address of the request may differ from the one that the provider signed.
        url = str(place.settings.get("webhook") or request.build_absolute_uri())
        given = request.headers.get("X-Twilio-Signature", "")
        if not hmac.compare_digest(given.encode(), signature(place.secrets["token"], url, form).encode()):
            raise PermissionError("the signature is wrong")
        told = dict(form)
        # Twilio sends an answer to a person by what a call is answered with: nothing here.
        answer = HttpResponse("<Response/>", content_type="text/xml")
        if (status := told.get("MessageStatus")) and status != "received":
            receipts = [_receipt(told["MessageSid"], status, told.get("ErrorCode"))] if status in _STATES else []
            return Received(receipts=receipts, answer=answer)
        if told.get("OptOutType") == "HELP":  # Twilio has answered it
            return Received(answer=answer)
        return Received([_inbound(told)], answer=answer)

    async def send(self, place: Place, message: Outbound) -> Sent:
        with in_language(message.language):
            text = _text(message)
        parts = pieces(text, self.longest_text)
        if len(parts) > _MOST_MESSAGES:
            parts = [*parts[: _MOST_MESSAGES - 1], f"{parts[_MOST_MESSAGES - 1][: self.longest_text - 1]}…"]
        return await send_in_order(place, message.once, parts, lambda part: _send(place, part))


def signature(token: str, url: str, form: Sequence[tuple[str, str]]) -> str:
    """Twilio's signature: of the address, and of the form's fields in the order of their names."""
    signed = url + "".join(name + value for name, value in sorted(set(form)))
    return base64.b64encode(hmac.new(token.encode(), signed.encode(), hashlib.sha1).digest()).decode()


def _sender(number: str) -> str:
    """The number or short code as the provider writes it; "" for what is neither."""
    return number if _SHORT_CODE.fullmatch(number) else plain_phone(number)


def _inbound(told: Mapping[str, str]) -> Inbound:
    """Files of multimedia messages are refused, so that they are named and have no bytes."""
    count = min(int(told.get("NumMedia") or 0), _MOST_FILES)
    files = [InboundFile(told.get(f"MediaContentType{number}") or "file") for number in range(count)]
    who = told["From"]
    return Inbound(
        external_id=told["MessageSid"],
        key=who,
        peer=who,
        sender=plain_phone(who),
        text="stop" if told.get("OptOutType") == "STOP" else told.get("Body", ""),
        files=files,
    )


def _receipt(sid: str, status: str, code: str | None) -> Receipt:
    problem = ""
    if code and code.isdecimal():
        problem = problem_of(int(code), _ERRORS)
    return Receipt(sid, _STATES[status], problem)


def _text(message: Outbound) -> str:
    if message.file:
        return gettext("We have a file for you that can't be sent by text message: {name}").format(
            name=message.file.name
        )
    return render(numbered(whole_text(message), message.options, language=message.language), PLAIN)


async def _known_number(place: Place) -> dict[str, object] | None:
    """The channel's number as the account has it; None if it doesn't."""
    number = _sender(place.settings["number"])
    told = await _ask("GET", place, f"IncomingPhoneNumbers.json?{urlencode({'PhoneNumber': number})}")
    known: dict[str, object] | None = next(iter(told.get("incoming_phone_numbers") or ()), None)
    return known


async def _send(place: Place, text: str) -> str:
    form = {"To": place.peer, "From": _sender(place.settings["number"]), "Body": text}
    if webhook := place.settings.get("webhook"):
        form["StatusCallback"] = str(webhook)
    return str((await _ask("POST", place, "Messages.json", form=form)).get("sid", ""))


async def _ask(method: str, place: Place, path: str, *, form: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the provider answers with. Raises `NotSent` with what its error code means."""
    account = place.settings["account_sid"]
    basic = base64.b64encode(f"{account}:{place.secrets['token']}".encode()).decode()
    url = f"{_base()}/2010-04-01/Accounts/{account}/{path}"
    answer = await call(method, url, headers={"Authorization": f"Basic {basic}"}, form=form, judged=range(400, 600))
    told = answer.json()
    if answer.status in (200, 201) and told:
        return told
    raise refusal(answer, told.get("code"), _ERRORS)


def _base() -> str:
    return api_address(ChannelKind.SMS, "https://api.twilio.com")
