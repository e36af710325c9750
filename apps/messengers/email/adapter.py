"""E-mail as a channel: a mailbox over IMAP and SMTP, or an inbound webhook in place of IMAP.

A mail belongs to a thread by the token in the address that it answers, or by the ids of mails that it refers to. The
address of a sender proves nothing: anybody can write any. Automatic answers, lists, our own mails and mails whose
sender the company's server found forged begin no conversation.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate, make_msgid, parseaddr
from typing import Any, ClassVar
from uuid import NAMESPACE_URL, UUID, uuid5

from django.conf import settings
from django.core.mail import get_connection
from django.core.mail.message import EmailMultiAlternatives
from django.http import HttpRequest
from django.template.loader import render_to_string

from apps.bus.threads import is_stopping
from apps.contacts.enums import IdentityKind, Proof
from apps.messengers.email import intake, servers
from apps.messengers.enums import ChannelKind
from apps.messengers.ports import Adapter, NotSent, Outbound, Place, Received, Sent, Setting
from apps.sessions.markdown import render_for_visitors
from apps.tenants.addresses import is_email
from kernel.language import gettext, in_language
from kernel.language import gettext_lazy as _

SECURITIES = ("starttls", "tls", "none")
TOLERANCE_SECONDS = 300
_SIGNED = re.compile(r"v1,([A-Za-z0-9+/=]{20,100})")


class EmailAdapter(Adapter):
    """Settings `imap_*` are empty for a channel whose mails come by webhook; `smtp_*` for one that sends over the
    installation's own mail server."""

    kind = ChannelKind.EMAIL
    identity = IdentityKind.EMAIL
    proof = Proof.NONE
    sends_twice_safely = True
    sends_files_twice_safely = True
    largest_call = servers.MAX_BYTES
    settings: ClassVar[Sequence[Setting]] = (
        Setting("address", _("Address"), _("The address that customers write to, such as support@example.com")),
        Setting("sender", _("Sender name"), _("Shown to customers; the chatbot's name when empty"), required=False),
        Setting(
            "imap_host",
            _("IMAP server"),
            _("Empty when emails arrive by webhook"),
            required=False,
            guards="imap_password",
        ),
        Setting("imap_port", _("IMAP port"), required=False, kind="number", default="993", guards="imap_password"),
        Setting(
            "imap_security",
            _("IMAP security"),
            _("tls, starttls or none"),
            required=False,
            default="tls",
            guards="imap_password",
        ),
        Setting("imap_user", _("IMAP user"), required=False, guards="imap_password"),
        Setting("imap_password", _("IMAP password"), secret=True, required=False),
        Setting("imap_folder", _("Folder"), required=False, default="INBOX"),
        Setting(
            "smtp_host",
            _("SMTP server"),
            _("Empty to send over the mail server of this installation"),
            required=False,
            guards="smtp_password",
        ),
        Setting("smtp_port", _("SMTP port"), required=False, kind="number", default="587", guards="smtp_password"),
        Setting(
            "smtp_security",
            _("SMTP security"),
            _("starttls, tls or none"),
            required=False,
            default="starttls",
            guards="smtp_password",
        ),
        Setting("smtp_user", _("SMTP user"), required=False, guards="smtp_password"),
        Setting("smtp_password", _("SMTP password"), secret=True, required=False),
        Setting(
            "trusted_server",
            _("Checking server"),
            _("The name in the Authentication-Results header of your mail server; emails it found forged are ignored"),
            required=False,
        ),
        Setting(
            "webhook_secret",
            _("Webhook secret"),
            _("With which your mail provider signs; 16 characters or more"),
            secret=True,
            required=False,
        ),
        Setting(
            "plus",
            _("Reply addresses with a token"),
            _("yes if your server delivers support+something@ to support@, otherwise no"),
            required=False,
            default="yes",
        ),
    )

    def check(self, settings: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, Any]:
        problems: dict[str, object] = {}
        if not is_email(settings["address"]):
            problems["address"] = "invalid"
        for name in ("imap_port", "smtp_port"):
            if not (settings[name].isdecimal() and 0 < int(settings[name]) < 65536):
                problems[name] = "invalid"
        for name in ("imap_security", "smtp_security"):
            if settings[name] not in SECURITIES:
                problems[name] = "invalid"
        if settings["plus"] not in ("yes", "no"):
            problems["plus"] = "invalid"
        if settings["imap_host"] and not (settings["imap_user"] and secrets.get("imap_password")):
            problems["imap_password"] = "required"
        secret = secrets.get("webhook_secret", "")
        if not settings["imap_host"] and len(secret) < 16:
            problems["webhook_secret"] = "too_short" if secret else "required"
        return problems

    def steps(self, settings: Mapping[str, object], webhook: str) -> Sequence[Any]:
        return (
            _("Create a mailbox for your chatbot, or forward the emails of an existing one to it."),
            _("Enter its IMAP and SMTP servers here, with a password for apps if your provider has them."),
            _("Without IMAP, let your mail provider post each raw email to {webhook}.").format(webhook=webhook),
            _("Check the connection, then write to the address from another mailbox."),
        )

    async def connect(self, place: Place, webhook: str) -> Mapping[str, object]:
        if place.settings["imap_host"]:
            await asyncio.to_thread(servers.imap_check, place.settings, place.secrets.get("imap_password", ""))
        if place.settings["smtp_host"]:
            await asyncio.to_thread(servers.smtp_check, place.settings, place.secrets.get("smtp_password", ""))
        elif not settings.EMAIL_HOST:
            raise NotSent("no_mail_server")
        return {}

    def polls(self, settings: Mapping[str, object]) -> bool:
        return bool(settings["imap_host"])

    async def poll(
        self,
        tenant_id: UUID,
        channel_id: UUID,
        place: Place,
        kept: dict[str, object],
        go_on: Callable[[], Awaitable[bool]],
    ) -> None:
        password = place.secrets.get("imap_password", "")
        box = await asyncio.to_thread(servers.Mailbox, place.settings, password)
        over = threading.Event()
        try:
            while True:
                fetched, following = await asyncio.to_thread(box.fetch, kept)
                for mail in fetched:
                    await intake.store(tenant_id, channel_id, mail.content, uid=mail.uid)
                kept.update(following)
                if not (box.can_wait and await go_on()):
                    return
                if len(fetched) < servers.MAX_AT_ONCE:
                    # A server may end a connection at any time; the next look says whether it is away.
                    with suppress(NotSent):
                        await asyncio.to_thread(box.wait, lambda: over.is_set() or is_stopping())
                        continue
                    return
        finally:
            over.set()
            await asyncio.to_thread(box.close)

    def receive(self, request: HttpRequest, body: bytes, place: Place) -> Received:
        """A raw mail as the body, signed as Standard Webhooks sign (their three headers)."""
        name, stamp = request.headers.get("webhook-id", ""), request.headers.get("webhook-timestamp", "")
        secret = place.secrets.get("webhook_secret", "")
        if not secret or not stamp.isdecimal() or abs(time.time() - int(stamp)) > TOLERANCE_SECONDS:
            raise PermissionError
        digest = hmac.new(secret.encode(), f"{name}.{stamp}.".encode() + body, hashlib.sha256).digest()
        given = _SIGNED.findall(request.headers.get("webhook-signature", ""))
        # In constant time. A provider that changes its secret signs with both for a while.
        if not any(hmac.compare_digest(intake.base64_of(digest), each) for each in given):
            raise PermissionError
        return Received(raw=body)

    async def send(self, place: Place, message: Outbound) -> Sent:
        mail = compose(place, message)
        if place.settings["smtp_host"]:
            await asyncio.to_thread(servers.smtp_send, place.settings, place.secrets.get("smtp_password", ""), mail)
        elif settings.EMAIL_HOST or "smtp" not in settings.EMAIL_BACKEND:
            await asyncio.to_thread(_send_over_installation, mail)
        else:
            raise NotSent("no_mail_server", retry_after=3600)
        message_id = str(mail["Message-ID"]).strip("<>")
        sent = [message_id, *place.reference.get("ids", [])][:20]
        return Sent(message_id, {"ids": sent})


def compose(place: Place, message: Outbound) -> EmailMessage:
    """The mail for one entry, in the thread of the mails before it. Its id is the same at every attempt."""
    address = str(place.settings["address"])
    local, _, domain = address.rpartition("@")
    sender = " ".join((message.author or str(place.settings["sender"]) or message.title).split())
    mail = EmailMessage()
    subject = " ".join(str(place.reference.get("subject", "")).split())
    with in_language(message.language):
        subject = f"Re: {subject}" if subject else gettext("Message from {title}").format(title=message.title)
        options = [(number, option.label) for number, option in enumerate(message.options, 1)]
        context = {
            "subject": subject,
            "text": message.text,
            "html": render_for_visitors(message.text),
            "author": message.author,
            "title": message.title,
            "options": options,
            "sources": message.sources,
        }
        plain = render_to_string("messengers/email/message.txt", context)
        html = render_to_string("messengers/email/message.html", context)
    mail["Subject"] = subject[:200]
    mail["From"] = Address(sender[:80], addr_spec=address if place.settings["smtp_host"] else _installation_address())
    mail["To"] = place.peer
    token = f"+{place.key}" if place.settings["plus"] == "yes" and place.key else ""
    mail["Reply-To"] = f"{local}{token}@{domain}"
    mail["Date"] = formatdate()
    # The same at each attempt: mailboxes show a mail that comes twice once.
    mail["Message-ID"] = f"<{uuid5(NAMESPACE_URL, message.once).hex}@{domain}>" if message.once else make_msgid()
    if last := place.reference.get("last"):
        mail["In-Reply-To"] = f"<{last}>"
        known = [*reversed(place.reference.get("ids", [])), last]
        mail["References"] = " ".join(f"<{each}>" for each in dict.fromkeys(known))
    # Our own mails are recognised by it when they come back (mail loop).
    mail["X-Silas-Channel"] = place.public_id
    if not message.author:
        # Other programs must not answer it (RFC 3834).
        mail["Auto-Submitted"] = "auto-replied"
    mail["X-Auto-Response-Suppress"] = "All"
    mail.set_content(plain)
    mail.add_alternative(html, subtype="html")
    if message.file:
        main, _, sub = message.file.mime.partition("/")
        mail.add_attachment(
            message.file.content, maintype=main, subtype=sub or "octet-stream", filename=message.file.name
        )
    return mail


def _installation_address() -> str:
    """The sender of the installation's mail server, which vouches for no company's own address."""
    return parseaddr(settings.DEFAULT_FROM_EMAIL)[1]


class _Composed(EmailMultiAlternatives):
    """A mail that is composed already, for Django's mail backends."""

    def __init__(self, mail: EmailMessage) -> None:
        super().__init__(to=[str(mail["To"])], from_email=settings.DEFAULT_FROM_EMAIL)
        self._mail = mail

    def message(self, *, policy: object = None) -> Any:
        return self._mail


def _send_over_installation(mail: EmailMessage) -> None:
    try:
        get_connection().send_messages([_Composed(mail)])
    except OSError as error:
        raise NotSent(type(error).__name__, retry_after=60) from None
