"""Telegram: a bot that people write to in private chats, by webhook (Bot API).

Telegram calls with a secret that is derived from the bot's token, so nothing more is stored. Groups, edited messages
and other bots are ignored. A press is acknowledged in the answer to the call that reports it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from django.http import HttpRequest, JsonResponse

from apps.messengers.client import FILE_SECONDS, RENEWAL_SECONDS, Answer, api_address, call, download, send_in_order
from apps.messengers.enums import ChannelKind
from apps.messengers.formatting import Style, pieces, render, whole_text
from apps.messengers.ports import (
    Adapter,
    CardButton,
    CardMessage,
    Inbound,
    InboundFile,
    NotSent,
    Outbound,
    Place,
    Press,
    Received,
    Sent,
    Setting,
)
from kernel.language import gettext
from kernel.language import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_TOKEN = re.compile(r"[0-9]{3,20}:[A-Za-z0-9_-]{30,60}")
_UPDATES = ("message", "callback_query")
_LABEL, _LARGEST_SENT = 64, 50_000_000
_FLOOD_SECONDS = 30.0
CARD = "card:"
# In characters: of an alert and of a card; in bytes: of what a button brings back.
_LONGEST_ALERT, _LONGEST_CARD, _LONGEST_DATA = 200, 3900, 64
# Kinds of messages with one file, and the name of one that Telegram gives none.
_FILES = {
    "document": "document",
    "audio": "audio.mp3",
    "voice": "voice.ogg",
    "video": "video.mp4",
    "video_note": "video.mp4",
}

STYLE = Style(
    {
        "strong": ("<b>", "</b>"),
        "em": ("<i>", "</i>"),
        "code": ("<code>", "</code>"),
        "pre": ("<pre>", "</pre>"),
        "blockquote": ("<blockquote>", "</blockquote>"),
    },
    clean=lambda text: escape(text, quote=False),
    anchors=True,
)


class TelegramAdapter(Adapter):
    kind = ChannelKind.TELEGRAM
    settings: ClassVar[Sequence[Setting]] = (Setting("token", _("Bot token"), help=_("From @BotFather"), secret=True),)
    longest_text = 4096
    opt_out_words = frozenset({"/stop"})
    opt_in_words = frozenset({"/start"})
    greets = True
    sets_webhook = True
    carries_cards = True

    def check(self, settings: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, StrOrPromise]:
        return {} if _TOKEN.fullmatch(secrets.get("token", "")) else {"token": _("This isn't a bot token.")}

    def steps(self, settings: Mapping[str, object], webhook: str) -> Sequence[StrOrPromise]:
        return (
            gettext("Write /newbot to @BotFather in Telegram, and choose a name."),
            gettext("Paste the token that it answers with here."),
            gettext("Choose Check connection: Telegram is then told where to deliver messages."),
        )

    def link(self, settings: Mapping[str, object], secret: str) -> str:
        return f"{settings['link']}?start={secret}" if settings.get("link") else ""

    async def connect(self, place: Place, webhook: str) -> Mapping[str, object]:
        bot = await _call(place, "getMe")
        hook = {
            "url": webhook,
            "secret_token": webhook_secret(place),
            "allowed_updates": list(_UPDATES),
        }
        await _call(place, "setWebhook", hook)
        name = str(bot.get("username", ""))
        return {"bot": name, "link": f"https://t.me/{name}", "webhook": webhook}

    async def disconnect(self, place: Place) -> None:
        known = await _call(place, "getWebhookInfo")
        if str(known.get("url", "")).endswith(f"/{place.public_id}"):
            await _call(place, "deleteWebhook")

    def receive(self, request: HttpRequest, body: bytes, place: Place) -> Received:
        given = request.headers.get("X-Telegram-Bot-Api-Secret-Token", "")
        if not hmac.compare_digest(given.encode(), webhook_secret(place).encode()):
            raise PermissionError
        update = json.loads(body)
        bot = place.secrets["token"].partition(":")[0]
        if pressed := update.get("callback_query"):
            # Stops the button's waiting sign without a call of ours.
            answer = JsonResponse({"method": "answerCallbackQuery", "callback_query_id": str(pressed["id"])})
            chat = (pressed.get("message") or {}).get("chat") or {}
            if chat.get("type") != "private" or not pressed.get("data"):
                return Received(answer=answer)
            if str(pressed["data"]).startswith(CARD):
                return Received(presses=[_press(pressed, chat)])
            message = _inbound(pressed["from"], chat, external_id=f"{bot}:press:{pressed['id']}")
            return Received([replace(message, choice=str(pressed["data"]))], answer=answer)
        message = update.get("message")
        if not message or message["chat"]["type"] != "private" or message["from"].get("is_bot"):
            return Received()
        chat = message["chat"]
        inbound = _inbound(message["from"], chat, external_id=f"{bot}:{chat['id']}:{message['message_id']}")
        word, _space, secret = str(message.get("text") or "").partition(" ")
        if word == "/start" and secret:
            # The word of a link. It joins nothing by itself: the person is asked first (`inbound`).
            return Received([replace(inbound, text=word, continues=secret.strip()[:64])])
        return Received([replace(inbound, text=_text(message), files=tuple(_files(message)))])

    async def fetch(self, place: Place, message: Inbound) -> Inbound:
        return replace(message, files=tuple([await _fetched(place, file) for file in message.files]))

    async def send(self, place: Place, message: Outbound) -> Sent:
        if message.file:
            return Sent(await _send_file(place, message))
        parts = pieces(whole_text(message), self.longest_text)
        buttons = [[{"text": each.label[:_LABEL], "callback_data": each.choice}] for each in message.options]
        markup = {"reply_markup": {"inline_keyboard": buttons}} if buttons else {}
        markups: list[dict[str, Any]] = [{} for __ in parts[1:]] + [markup]
        return await send_in_order(
            place, message.once, list(zip(parts, markups, strict=True)), lambda part: _send_text(place, *part)
        )

    async def send_card(self, place: Place, card: CardMessage) -> Sent:
        sent = await _call(place, "sendMessage", {"chat_id": place.peer, **_card(card)})
        return Sent(f"{place.peer}:{sent.get('message_id', '')}")

    async def update_card(self, place: Place, external_id: str, card: CardMessage) -> None:
        chat, _sep, message_id = external_id.partition(":")
        try:
            await _call(place, "editMessageText", {"chat_id": chat, "message_id": int(message_id), **_card(card)})
        except NotSent as refused:
            if refused.code != "not_modified":
                raise

    async def answer_press(self, place: Place, press: Press, text: str) -> None:
        fields = {"callback_query_id": press.reply["id"], "text": text[:_LONGEST_ALERT], "show_alert": True}
        await _call(place, "answerCallbackQuery", fields)


def webhook_secret(place: Place) -> str:
    """What Telegram sends with each call of this channel's address."""
    return hmac.new(place.secrets["token"].encode(), f"webhook:{place.public_id}".encode(), hashlib.sha256).hexdigest()


def _inbound(person: Mapping[str, Any], chat: Mapping[str, Any], *, external_id: str) -> Inbound:
    name = " ".join(filter(None, [person.get("first_name"), person.get("last_name")]))
    return Inbound(
        external_id=external_id,
        key=str(int(chat["id"])),
        peer=str(int(chat["id"])),
        sender=str(int(person["id"])),
        name=name or str(person.get("username", "")),
        language=str(person.get("language_code", "")),
    )


def _press(pressed: Mapping[str, Any], chat: Mapping[str, Any]) -> Press:
    """A press of a card's button, in the message with this id of the chat in which it was pressed."""
    message_id = f"{int(chat['id'])}:{int(pressed['message']['message_id'])}"
    account, value = str(int(pressed["from"]["id"])), str(pressed["data"]).removeprefix(CARD)
    return Press(account, value, message_id, {"id": str(pressed["id"])})


def _card(card: CardMessage) -> dict[str, object]:
    """A card as Telegram's HTML: what people and models wrote is escaped, and nothing but the title is marked up."""
    lines = [escape(line.as_text()) for line in card.lines]
    body = "\n".join([f"<b>{escape(card.title)}</b>", *lines, "", *map(escape, card.notes)])
    buttons = [_button(button) for button in card.buttons if len(f"{CARD}{button.value}".encode()) <= _LONGEST_DATA]
    if len(body) > _LONGEST_CARD:
        body = f"<b>{escape(card.title)[:1000]}</b>\n\n" + "\n".join(map(escape, card.notes))[:2000]
        buttons = [button for button in buttons if "url" in button]
    return {
        "text": body,
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
        "reply_markup": {"inline_keyboard": [buttons] if buttons else []},
    }


def _button(button: CardButton) -> dict[str, str]:
    pressed = {"url": button.url} if button.url else {"callback_data": f"{CARD}{button.value}"}
    return {"text": button.label[:_LABEL], **pressed}


def _text(message: Mapping[str, Any]) -> str:
    """What was written; of a sticker its emoji, of a place or a contact what it says."""
    text = str(message.get("text") or message.get("caption") or "")
    if sticker := message.get("sticker"):
        return str(sticker.get("emoji", ""))
    if place := message.get("location"):
        return f"{float(place['latitude'])}, {float(place['longitude'])}"
    if contact := message.get("contact"):
        return " ".join(str(contact[key]) for key in ("first_name", "last_name", "phone_number") if contact.get(key))
    return text


def _files(message: Mapping[str, Any]) -> list[InboundFile]:
    if photos := message.get("photo"):
        return [InboundFile("photo.jpg", ref=str(photos[-1]["file_id"]))]
    found = [(message[kind], name) for kind, name in _FILES.items() if message.get(kind)]
    return [InboundFile(str(file.get("file_name") or name), ref=str(file["file_id"])) for file, name in found]


async def _fetched(place: Place, file: InboundFile) -> InboundFile:
    """The file with its bytes; without them if Telegram or we do not take so large a one. Raises `NotSent` where
    another attempt may succeed."""
    try:
        path = str((await _call(place, "getFile", {"file_id": file.ref}))["file_path"])
    except NotSent as refused:
        if refused.retry_after is not None:
            raise
        return InboundFile(file.name)
    return await download(file, f"{_base()}/file/bot{place.secrets['token']}/{quote(path)}")


async def _send_text(place: Place, text: str, markup: Mapping[str, object]) -> str:
    fields = {"chat_id": place.peer, "link_preview_options": {"is_disabled": True}, **markup}
    try:
        sent = await _call(place, "sendMessage", {**fields, "text": render(text, STYLE), "parse_mode": "HTML"})
    except NotSent as refused:
        if refused.code != "not_parsed":
            raise
        sent = await _call(place, "sendMessage", {**fields, "text": text})
    return f"{place.peer}:{sent.get('message_id', '')}"


async def _send_file(place: Place, message: Outbound) -> str:
    file = message.file
    assert file is not None
    if len(file.content) > _LARGEST_SENT:
        raise NotSent("too_large")
    files = {"document": (file.name, file.content, file.mime)}
    sent = await _call(place, "sendDocument", {"chat_id": place.peer}, files=files)
    return f"{place.peer}:{sent.get('message_id', '')}"


async def _call(
    place: Place,
    method: str,
    fields: Mapping[str, Any] | None = None,
    *,
    files: Mapping[str, tuple[str, bytes, str]] | None = None,
) -> dict[str, object]:
    """The result of a method, an empty one for one that is no object. Raises `NotSent`."""
    url = f"{_base()}/bot{place.secrets['token']}/{method}"
    if files:
        answer = await call("POST", url, form=fields, files=files, judged=(429,), seconds=FILE_SECONDS)
    else:
        answer = await call("POST", url, body=fields or {}, judged=(429,))
    told = answer.json()
    if told.get("ok") is True:
        result = told.get("result")
        return result if isinstance(result, dict) else {}
    raise _refusal(answer, told)


def _refusal(answer: Answer, told: Mapping[str, Any]) -> NotSent:
    said = str(told.get("description", "")).lower()
    match answer.status:
        case 403:
            return NotSent("blocked", opted_out=True)
        case 401 | 404:
            return NotSent("unauthorized", retry_after=RENEWAL_SECONDS)
        case 429:
            wait = (told.get("parameters") or {}).get("retry_after")
            return NotSent("rate_limited", retry_after=float(wait or _FLOOD_SECONDS))
        case 413:
            return NotSent("too_large")
        case 400 if "can't parse" in said:
            return NotSent("not_parsed")
        case 400 if "chat not found" in said:
            return NotSent("chat_not_found")
        case 400 if "file is too big" in said:
            return NotSent("too_large")
        case 400 if "message is not modified" in said:
            return NotSent("not_modified")
        case 400 if "webhook" in said:
            return NotSent("webhook_refused")
    return NotSent(f"http_{answer.status}")


def _base() -> str:
    return api_address(ChannelKind.TELEGRAM, "https://api.telegram.org")
