"""Microsoft Teams as a channel: employees write to the bot directly, or mention it in a channel or a group chat.

Activities come from the Bot Framework with a token that its published keys verify: issuer, audience, time, and that it
was issued for the address to which answers go. Answers go there with a token of the app's own, and only to Microsoft's
hosts. Two people in one thread have a conversation each.
"""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote, urlsplit

import jwt
from asgiref.sync import async_to_sync
from django.http import HttpRequest

from apps.messengers.client import call, download
from apps.messengers.enums import ChannelKind
from apps.messengers.ports import (
    Adapter,
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
from apps.messengers.teams import cards
from kernel.language import gettext, in_language
from kernel.language import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

ISSUER = "https://api.botframework.com"
KEYS = "https://login.botframework.com/v1/.well-known/keys"
LOGIN = "https://login.microsoftonline.com"
SERVICE = "https://smba.trafficmanager.net/teams"
SERVICE_HOSTS = frozenset({"smba.trafficmanager.net", "smba.infra.gcc.teams.microsoft.com"})
FILE_HOSTS = (".sharepoint.com", ".sharepoint.us")
_FILE, _PICTURE, _MOST_FILES = "application/vnd.microsoft.teams.file.download.info", "picture", 10
# How a picture begins that Teams gives no name, and its ending.
_PICTURES = {b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"RIFF": ".webp"}
_LEEWAY_SECONDS, _KEYS_SECONDS, _KEYS_AGAIN_SECONDS, _PRESS_SECONDS = 300, 86_400, 300, 2.0
_MENTION = re.compile(r"<at>[^<>]{0,200}</at>")
_TAG = re.compile(r"<[a-zA-Z/][^<>]{0,500}>")
# The published keys by their address, and the apps' tokens, each with the time at which it was fetched or ends.
_keys: dict[str, tuple[float, dict[str, Any]]] = {}
_tokens: dict[tuple[str, str], tuple[float, str]] = {}


class TeamsAdapter(Adapter):
    kind = ChannelKind.TEAMS
    settings: ClassVar[Sequence[Setting]] = (
        Setting("app_id", _("Application ID")),
        Setting("directory", _("Directory ID"), _("Of your organization; only its members are answered")),
        Setting("password", _("Client secret"), secret=True),
    )
    longest_text = 20_000
    links_files = True
    carries_cards = True

    def steps(self, settings: Mapping[str, object], webhook: str) -> Sequence[StrOrPromise]:
        return (
            _("In the Azure portal, create an Azure Bot of the type single tenant, with a client secret."),
            _("Enter this address as its messaging endpoint: {url}").format(url=webhook),
            _("Add the channel Microsoft Teams, and upload an app package for the bot in the Teams admin center."),
            _("Set supportsFiles in the app package, so that people can send files."),
        )

    async def connect(self, place: Place, webhook: str) -> Mapping[str, object]:
        await _token(place, fresh=True)
        return {"webhook": webhook}

    def receive(self, request: HttpRequest, body: bytes, place: Place) -> Received:
        told = json.loads(body)
        _check_token(request.headers.get("Authorization", ""), told, place)
        organization = told["conversation"].get("tenantId") or told.get("channelData", {}).get("tenant", {}).get("id")
        if told["type"] != "message" or organization != place.settings["directory"]:
            return Received()
        value = told.get("value")
        if isinstance(value, dict) and value.get("card"):
            message_id = _id_of(told["conversation"]["id"], told.get("replyToId", ""))
            reply = {"service_url": told["serviceUrl"], "conversation": told["conversation"]["id"]}
            return Received(presses=[Press(str(told["from"]["id"]), str(value["card"]), message_id, reply)])
        return Received([_message(told, value if isinstance(value, dict) else {})])

    async def fetch(self, place: Place, message: Inbound) -> Inbound:
        return replace(message, files=tuple([await _fetched(place, file) for file in message.files]))

    async def send(self, place: Place, message: Outbound) -> Sent:
        body: dict[str, object] = {"type": "message", "text": _text(message), "textFormat": "markdown"}
        if message.options:
            body |= {"text": "", "attachments": [cards.question(_text(message), message.options)]}
        elif message.file and message.file.link:
            with in_language(message.language):
                body |= {"text": "", "attachments": [cards.file(_text(message), gettext("Open"), message.file.link)]}
        service = str(place.reference.get("service_url") or SERVICE)
        return Sent(await _post(place, service, place.peer, body))

    async def send_card(self, place: Place, card: CardMessage) -> Sent:
        bot = {"id": f"28:{place.settings['app_id']}"}
        member, directory = {"id": place.peer}, place.settings["directory"]
        opening = {"bot": bot, "members": [member], "tenantId": directory, "isGroup": False}
        told = await _ask("POST", place, SERVICE, "/v3/conversations", opening)
        conversation = str(told.get("id", ""))
        body = {"type": "message", "summary": card.title, "attachments": [cards.card(card)]}
        return Sent(_id_of(conversation, await _post(place, SERVICE, conversation, body)))

    async def update_card(self, place: Place, external_id: str, card: CardMessage) -> None:
        conversation, _sep, activity = external_id.rpartition("|")
        body = {"type": "message", "summary": card.title, "attachments": [cards.card(card)]}
        await _ask("PUT", place, SERVICE, f"{_path(conversation)}/{quote(activity, safe='')}", body)

    async def answer_press(self, place: Place, press: Press, text: str) -> None:
        body = {"type": "message", "text": text, "textFormat": "plain"}
        reply = press.reply
        await _post(place, str(reply["service_url"]), str(reply["conversation"]), body, seconds=_PRESS_SECONDS)


def _message(told: Mapping[str, Any], value: Mapping[str, Any]) -> Inbound:
    sender, conversation = str(told["from"]["id"]), str(told["conversation"]["id"])
    alone = told["conversation"].get("conversationType", "personal") == "personal"
    text = html.unescape(_TAG.sub("", _MENTION.sub("", str(told.get("text") or "")))).strip()
    choice = str(value.get("choice") or "")
    return Inbound(
        external_id=f"{conversation}|{told['id']}",
        key=conversation if alone else f"{conversation}:{sender}",
        peer=conversation,
        text="" if choice else text,
        choice=choice,
        name=str(told["from"].get("name") or ""),
        sender=sender,
        language=str(told.get("locale") or ""),
        files=[] if choice else _files(told),
        reference={"service_url": str(told["serviceUrl"])},
    )


def _files(told: Mapping[str, Any]) -> list[InboundFile]:
    """Files that were attached, and pictures within the text. What the text itself looks like is an attachment too."""
    found = []
    for each in told.get("attachments") or ():
        kind, content = str(each.get("contentType") or ""), each.get("content")
        if kind == _FILE and isinstance(content, dict) and content.get("downloadUrl"):
            found.append(InboundFile(str(each.get("name") or "file"), ref=str(content["downloadUrl"])))
        elif kind.startswith("image/") and each.get("contentUrl"):
            found.append(InboundFile(str(each.get("name") or _PICTURE), ref=str(each["contentUrl"])))
    return found[:_MOST_FILES]


async def _fetched(place: Place, file: InboundFile) -> InboundFile:
    """The file with its bytes. The app's token goes to Microsoft's connector alone, a file's address brings its own;
    what is kept anywhere else has no bytes. Raises `NotSent` where another attempt may succeed."""
    if _is_microsofts(file.ref):
        headers = {"Authorization": f"Bearer {await _token(place)}"}
    elif _is_sharepoint(file.ref):
        headers = {}
    else:
        return InboundFile(file.name)
    found = await download(file, file.ref, headers=headers)
    if file.name != _PICTURE:
        return found
    ending = next((ending for mark, ending in _PICTURES.items() if found.content.startswith(mark)), ".png")
    return replace(found, name=f"{_PICTURE}{ending}")


def _text(message: Outbound) -> str:
    author = f"**{message.author}**" if message.author else ""
    sources = "\n".join(f"- [{title}]({url})" for title, url in message.sources)
    return "\n\n".join(filter(None, [author, message.text, sources]))


def _check_token(header: str, told: Mapping[str, object], place: Place) -> None:
    """Raises `PermissionError` unless the Bot Framework issued the token for this app and this activity's address."""
    scheme, _sep, token = header.partition(" ")
    service = str(told["serviceUrl"])
    # The answer, with the app's token, goes to the address that the call names.
    if scheme != "Bearer" or not _is_microsofts(service):
        raise PermissionError("no token, or an address that is not Microsoft's")
    try:
        key = _key(str(jwt.get_unverified_header(token).get("kid") or ""), str(told.get("channelId", "")))
        claims = jwt.decode(
            token,
            key,
            algorithms=["RS256"],
            audience=place.settings["app_id"],
            issuer=ISSUER,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["exp", "aud", "iss"]},
        )
    except (jwt.PyJWTError, NotSent, ValueError, TypeError) as error:
        raise PermissionError("the token is not the Bot Framework's") from error
    if str(claims.get("serviceurl", "")).rstrip("/") != service.rstrip("/"):
        raise PermissionError("the token is for another address")


def _key(kid: str, channel: str) -> jwt.PyJWK:
    """The published key with this id, if it is endorsed for the channel. Raises `jwt.PyJWTError` and `NotSent`."""
    fetched_at, known = _keys.get(KEYS, (0.0, {}))
    age = time.monotonic() - fetched_at
    if not known or age > _KEYS_SECONDS or (kid not in known and age > _KEYS_AGAIN_SECONDS):
        listed = async_to_sync(call)("GET", KEYS).json().get("keys") or []
        known = {str(key.get("kid")): key for key in listed}
        _keys[KEYS] = (time.monotonic(), known)
    found = known.get(kid)
    if found is None or channel not in found.get("endorsements", ()):
        raise jwt.InvalidKeyError("unknown key")
    return jwt.PyJWK.from_dict(found, algorithm="RS256")


def _is_microsofts(url: str) -> bool:
    """Whether answers, with the app's token, may go there."""
    try:
        parts, own = urlsplit(url), urlsplit(SERVICE)
    except ValueError:
        return False
    if (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
        return True
    return parts.scheme == "https" and parts.netloc in SERVICE_HOSTS


def _is_sharepoint(url: str) -> bool:
    """Whether Teams keeps files there."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" and (parts.hostname or "").endswith(FILE_HOSTS) and parts.netloc == parts.hostname


def _path(conversation: str) -> str:
    return f"/v3/conversations/{quote(conversation, safe='')}/activities"


def _id_of(conversation: object, activity: object) -> str:
    return f"{conversation}|{activity}"


async def _post(
    place: Place, service: str, conversation: str, body: Mapping[str, object], *, seconds: float = 15.0
) -> str:
    return str((await _ask("POST", place, service, _path(conversation), body, seconds=seconds)).get("id", ""))


async def _ask(
    method: str, place: Place, service: str, path: str, body: Mapping[str, object], *, seconds: float = 15.0
) -> dict[str, Any]:
    """Call the Bot Connector. Raises `NotSent`."""
    if not _is_microsofts(service):
        raise NotSent("address_refused")
    headers = {"Authorization": f"Bearer {await _token(place)}"}
    answer = await call(method, f"{service.rstrip('/')}{path}", headers=headers, body=body, seconds=seconds)
    if answer.status >= 300:
        code = answer.json().get("error", {})
        raise NotSent(str(code.get("code") if isinstance(code, dict) else "") or f"http_{answer.status}")
    return answer.json()


async def _token(place: Place, *, fresh: bool = False) -> str:
    """The app's own token for the Bot Connector, kept until shortly before it ends. Raises `NotSent`."""
    app_id, directory = str(place.settings["app_id"]), str(place.settings["directory"])
    ends, token = _tokens.get((app_id, place.secrets["password"]), (0.0, ""))
    if not fresh and time.monotonic() < ends:
        return token
    form = {
        "grant_type": "client_credentials",
        "client_id": app_id,
        "client_secret": place.secrets["password"],
        "scope": f"{ISSUER}/.default",
    }
    answer = await call("POST", f"{LOGIN}/{quote(directory, safe='')}/oauth2/v2.0/token", form=form)
    told = answer.json()
    if answer.status != 200 or not told.get("access_token"):
        raise NotSent(str(told.get("error") or "unauthorized"))
    ends = time.monotonic() + max(0.0, float(told.get("expires_in") or 0) - 300)
    _tokens[(app_id, place.secrets["password"])] = (ends, str(told["access_token"]))
    return str(told["access_token"])
