"""The addresses that providers call: messages, receipts and presses of all channels.

A call is believed by its signature alone, which the channel's adapter checks over the exact bytes. An unknown channel,
a wrong signature and a body of another shape tell the caller nothing, and are counted for its address.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from apps.messengers import file_links, following, inbound, ports, queries
from apps.messengers.cards import presses
from apps.messengers.delivery import place_of
from apps.messengers.email import intake
from apps.messengers.models import Channel
from apps.visitors.file_serving import as_download
from kernel.errors import NotFound, SilasError
from kernel.ratelimit import fixed_window
from kernel.ratelimit.addresses import address_key, address_of
from kernel.ratelimit.fixed_window import Limit
from kernel.tenancy import tenant_scope


@method_decorator(csrf_exempt, name="dispatch")
class Webhook(View):
    """`/channels/<kind>/<public_id>`: GET is a provider's check of the address, POST a call with messages."""

    def get(self, request: HttpRequest, kind: str, public_id: str) -> HttpResponse:
        return self.post(request, kind, public_id)

    def post(self, request: HttpRequest, kind: str, public_id: str) -> HttpResponse:
        address = address_key(address_of(request))
        there = Limit(f"channel_refused:{address}", 60, 60)
        # The address alone proves nothing, but it names the channel whose secret the signature is checked with.
        channel = queries.channel_by_public_id(public_id)
        if channel is None or channel.kind != kind:
            return _refused(there, 404)
        most = ports.adapter_of(kind).largest_call
        # Before the body is read into memory.
        if int(request.headers.get("Content-Length") or 0) > most:
            return _answer("too_large", 413)
        body = request.body
        if len(body) > most:
            return _answer("too_large", 413)
        with tenant_scope(channel.tenant_id):
            place = place_of(channel)
        try:
            received = ports.adapter_of(kind).receive(request, body, place)
        except PermissionError:
            return _refused(there, 403)
        # A signed body may still have any shape: providers change theirs, and a fault here must not repeat for ever.
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return _refused(there, 400)
        try:
            self._take(channel, received)
        except SilasError as refusal:
            answer = _answer(refusal.code, 429 if refusal.status == 429 else 503)
            answer["Retry-After"] = str(refusal.extra.get("retry_after", 5))
            return answer
        return received.answer or HttpResponse(status=200)

    def _take(self, channel: Channel, received: ports.Received) -> None:
        if received.raw:
            with tenant_scope(channel.tenant_id):
                intake.keep(channel.pk, received.raw)
        for message in received.messages:
            if any(file.ref for file in message.files):
                inbound.hold(channel.tenant_id, channel.pk, message)
            else:
                inbound.receive(channel.tenant_id, channel.pk, message)
        for press in received.presses:
            presses.reply(channel.tenant_id, channel.pk, press)
        if received.receipts:
            inbound.note_receipts(channel.tenant_id, channel.pk, list(received.receipts))


class OneFile(View):
    """`/channels/files/<token>`: a file that was sent as a link. A link that opens nothing is counted for its caller's
    address."""

    def get(self, request: HttpRequest, token: str) -> HttpResponseBase:
        try:
            answer = as_download(*file_links.opened(token))
        except NotFound:
            return _refused(Limit(f"channel_refused:{address_key(address_of(request))}", 60, 60), 404)
        # The address is the key to the file, and would stand in the logs of any site that it leads to.
        answer["Referrer-Policy"] = "no-referrer"
        return answer


class Confirm(View):
    """`/channels/confirm/<secret>`: the link of a mail. It confirms on a press, so that programs that look into mails
    confirm nothing."""

    def get(self, request: HttpRequest, secret: str) -> HttpResponse:
        found = following.waiting_confirmation(secret)
        return self._shown(request, "asked" if found else "gone", found.peer if found else "")

    def post(self, request: HttpRequest, secret: str) -> HttpResponse:
        return self._shown(request, "confirmed" if following.confirm(secret) else "gone")

    def _shown(self, request: HttpRequest, state: str, address: str = "") -> HttpResponse:
        shown = {"state": state, "address": address}
        answer = render(request, "messengers/confirm.html", shown, status=404 if state == "gone" else 200)
        answer["Cache-Control"], answer["Referrer-Policy"] = "no-store", "same-origin"
        return answer


def _refused(there: Limit, status: int) -> HttpResponse:
    """Answer a call that is not believed; after many of them within a minute with 429."""
    used_up = fixed_window.try_consume([there], otherwise="channel_call_not_counted")
    codes = {400: "invalid", 403: "forbidden", 404: "not_found"}
    return _answer("rate_limited", 429) if isinstance(used_up, Limit) else _answer(codes[status], status)


def _answer(code: str, status: int) -> HttpResponse:
    return JsonResponse({"error": {"code": code}}, status=status)
