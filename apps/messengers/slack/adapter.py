"""Slack as a channel: employees write to the app directly, or mention it in a channel and go on in that thread.

Calls come by the Events API and by interactivity, both signed with the app's signing secret; messages leave by
`chat.postMessage`. Two people in one Slack thread have a conversation each. What bots, other apps and people of other
workspaces write is left out.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qs, urlsplit
from uuid import NAMESPACE_URL, uuid5

from django.http import HttpRequest, JsonResponse

from apps.messengers.client import FILE_SECONDS, MOST_FILE_BYTES, api_address, call
from apps.messengers.enums import ChannelKind
from apps.messengers.ports import (
    Adapter,
    CardMessage,
    Inbound,
    InboundFile,
    NotSent,
    Outbound,
    OutboundFile,
    Place,
    Press,
    Received,
    Sent,
    Setting,
)
from apps.messengers.slack import blocks, mrkdwn
from kernel.language import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

SIGNATURE_SECONDS = 300
# Slack waits three seconds for the answer to a call, and a press is answered within it.
_PRESS_SECONDS = 2.0
_WORTH_ANOTHER = frozenset(
    {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org", "ratelimited"}
)
_SUBTYPES = (None, "file_share", "thread_broadcast")
CARD = "card:"


class SlackAdapter(Adapter):
    kind = ChannelKind.SLACK
    settings: ClassVar[Sequence[Setting]] = (
        Setting("token", _("Bot token"), _("Starts with xoxb-"), secret=True),
        Setting("signing_secret", _("Signing secret"), _("Under Basic Information of the app"), secret=True),
    )
    sends_twice_safely = True
    longest_text = 40_000
    carries_cards = True

    def check(self, settings: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, StrOrPromise]:
        return {} if secrets["token"].startswith("xoxb-") else {"token": _("A bot token starts with xoxb-.")}

    def steps(self, settings: Mapping[str, object], webhook: str) -> Sequence[StrOrPromise]:
        return (
            _("Create an app at api.slack.com/apps and install it in your workspace."),
            _("Add the bot scopes chat:write, im:history, im:write, app_mentions:read, files:read and files:write."),
            _(
                "Under Event Subscriptions, enter this address and subscribe to message.im and app_mention: {url}"
            ).format(url=webhook),
            _("Under Interactivity, enter the same address. Turn on the Messages tab under App Home."),
        )

    async def connect(self, place: Place, webhook: str) -> Mapping[str, object]:
        told = await _ask("auth.test", place, {})
        return {
            "team": str(told.get("team_id", "")),
            "team_name": str(told.get("team", "")),
            "bot": str(told.get("user", "")),
            "bot_user": str(told.get("user_id", "")),
        }

    def receive(self, request: HttpRequest, body: bytes, place: Place) -> Received:
        _check_signature(request, body, place.secrets["signing_secret"])
        if request.content_type == "application/x-www-form-urlencoded":
            return _interaction(json.loads(parse_qs(body.decode())["payload"][0]), place)
        told = json.loads(body)
        if told["type"] == "url_verification":
            return Received(answer=JsonResponse({"challenge": str(told["challenge"])}))
        if told["type"] != "event_callback" or not _is_ours(told.get("team_id"), place):
            return Received()
        message = _message(told["event"], str(told["team_id"]), place)
        return Received([message] if message else [])

    async def fetch(self, place: Place, message: Inbound) -> Inbound:
        files = []
        for file in message.files:
            # The token goes with the request: a forged address would be given it.
            if not _is_slacks(file.ref):
                continue
            answer = await call(
                "GET", file.ref, headers=_authorized(place), max_bytes=MOST_FILE_BYTES, seconds=FILE_SECONDS
            )
            # Without the scope `files:read` Slack answers with its login page.
            if answer.status == 200 and not answer.headers.get("content-type", "").startswith("text/html"):
                files.append(InboundFile(file.name, answer.content))
        return replace(message, files=tuple(files))

    async def send(self, place: Place, message: Outbound) -> Sent:
        if message.file:
            try:
                return await _send_file(place, message.file)
            except NotSent as refused:
                if refused.code != "missing_scope":
                    raise
        text = mrkdwn.message_text(message)
        body = {"text": text, **_common(message.once), "channel": place.peer}
        if message.options:
            body["blocks"] = blocks.question(text, message.options)
        if thread := place.reference.get("thread_ts"):
            body["thread_ts"] = thread
        return Sent(_id_of(await _ask("chat.postMessage", place, body)))

    async def send_card(self, place: Place, card: CardMessage) -> Sent:
        body = {"text": mrkdwn.escape(card.title), "blocks": blocks.card(card), "channel": _user_of(place.peer)}
        return Sent(_id_of(await _ask("chat.postMessage", place, {**body, **_common(card.once)})))

    async def update_card(self, place: Place, external_id: str, card: CardMessage) -> None:
        channel, _sep, ts = external_id.partition(":")
        body = {"text": mrkdwn.escape(card.title), "blocks": blocks.card(card), "channel": channel, "ts": ts}
        await _ask("chat.update", place, body)

    async def answer_press(self, place: Place, press: Press, text: str) -> None:
        url = str(press.reply.get("response_url", ""))
        if not _is_slacks(url):
            raise NotSent("address_refused")
        told = {"response_type": "ephemeral", "replace_original": False, "text": mrkdwn.escape(text)}
        await call("POST", url, body=told, seconds=_PRESS_SECONDS)


async def _send_file(place: Place, file: OutboundFile) -> Sent:
    """Upload the file, and share it where the person wrote. Raises `NotSent`."""
    told = await _ask("files.getUploadURLExternal", place, {"filename": file.name, "length": len(file.content)})
    url, file_id = str(told.get("upload_url", "")), str(told.get("file_id", ""))
    if not _is_slacks(url):
        raise NotSent("address_refused")
    uploaded = await call("POST", url, files={"file": (file.name, file.content, file.mime)}, seconds=FILE_SECONDS)
    if uploaded.status != 200:
        raise NotSent(f"http_{uploaded.status}")
    body: dict[str, object] = {"files": [{"id": file_id, "title": file.name}], "channel_id": place.peer}
    if thread := place.reference.get("thread_ts"):
        body["thread_ts"] = thread
    await _ask("files.completeUploadExternal", place, body)
    return Sent(f"{place.peer}:{file_id}")


def _check_signature(request: HttpRequest, body: bytes, secret: str) -> None:
    """Raises `PermissionError` unless Slack signed exactly this body within the last minutes."""
    moment = request.headers.get("X-Slack-Request-Timestamp", "")
    # An old call could be sent again by anyone who saw it (replay).
    if not moment.isascii() or not moment.isdecimal() or abs(time.time() - int(moment[:20])) > SIGNATURE_SECONDS:
        raise PermissionError("the time of the call is missing or old")
    given = request.headers.get("X-Slack-Signature", "")
    if not hmac.compare_digest(signature(secret, moment, body).encode(), given.encode()):
        raise PermissionError("the signature is wrong")


def signature(secret: str, moment: str, body: bytes) -> str:
    """Slack's signature, version 0."""
    return "v0=" + hmac.new(secret.encode(), b"v0:" + moment.encode() + b":" + body, hashlib.sha256).hexdigest()


def _message(event: Mapping[str, Any], team: str, place: Place) -> Inbound | None:
    """The message of an event; None for what no person wrote to the app. One that Slack delivers again, or as two kinds
    of event, has the same id."""
    kind, user, channel, ts = event["type"], event.get("user"), str(event["channel"]), str(event["ts"])
    alone = kind == "message" and event.get("channel_type") == "im"
    from_bot = event.get("bot_id") or event.get("app_id") or user in (None, "", place.settings.get("bot_user"))
    if not (alone or kind == "app_mention") or from_bot or event.get("subtype") not in _SUBTYPES:
        return None
    if not _is_ours(event.get("user_team") or event.get("team") or team, place):
        return None
    thread = str(event.get("thread_ts") or ("" if alone else ts))
    listed = [file for file in event.get("files") or () if file.get("url_private")]
    return Inbound(
        external_id=f"{channel}:{ts}",
        key=_key(channel, user, thread),
        peer=channel,
        text=mrkdwn.plain(str(event.get("text") or ""), bot=str(place.settings.get("bot_user", ""))),
        sender=f"{team}:{user}",
        files=[InboundFile(str(file.get("name") or "file"), ref=str(file["url_private"])) for file in listed],
        reference={"thread_ts": thread},
    )


def _interaction(told: Mapping[str, Any], place: Place) -> Received:
    """A press: of a card's button, or of an option in a conversation."""
    if told["type"] != "block_actions" or not _is_ours(told["user"].get("team_id"), place):
        return Received()
    action, user, container = told["actions"][0], str(told["user"]["id"]), told["container"]
    value, team = str(action.get("value") or ""), str(told["user"]["team_id"])
    channel, ts = str(container["channel_id"]), str(container["message_ts"])
    if value.startswith(CARD):
        reply = {"response_url": str(told.get("response_url", ""))}
        return Received(presses=[Press(f"{team}:{user}", value.removeprefix(CARD), f"{channel}:{ts}", reply)])
    if not value:
        return Received()
    thread = str(container.get("thread_ts") or told.get("message", {}).get("thread_ts") or "")
    message = Inbound(
        external_id=f"{channel}:{ts}:{user}:{action['action_ts']}",
        key=_key(channel, user, thread),
        peer=channel,
        sender=f"{team}:{user}",
        choice=value,
        reference={"thread_ts": thread},
    )
    return Received([message])


def _key(channel: str, user: object, thread: str) -> str:
    """Where a person writes to the app directly there is one conversation, in a channel one for each thread."""
    return f"{channel}:{user}" if channel.startswith("D") else f"{channel}:{thread}:{user}"


def _is_ours(team: object, place: Place) -> bool:
    """Whether the workspace is the connected one; a channel that is shared with others carries their people too."""
    known = place.settings.get("team")
    return not known or team == known


def _is_slacks(url: str) -> bool:
    """Whether the app's token, or what came of a press, may be sent there."""
    try:
        parts, own = urlsplit(url), urlsplit(_base())
    except ValueError:
        return False
    if (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
        return True
    return parts.scheme == "https" and parts.netloc.endswith(".slack.com")


def _common(once: str) -> dict[str, object]:
    return {"client_msg_id": str(uuid5(NAMESPACE_URL, once)), "unfurl_links": False, "unfurl_media": False}


def _id_of(told: Mapping[str, object]) -> str:
    return f"{told.get('channel', '')}:{told.get('ts', '')}"


def _user_of(account: str) -> str:
    return account.rpartition(":")[2]


def _authorized(place: Place) -> dict[str, str]:
    return {"Authorization": f"Bearer {place.secrets['token']}"}


async def _ask(method: str, place: Place, body: Mapping[str, object]) -> dict[str, Any]:
    """Call a method of Slack's Web API. Raises `NotSent` with Slack's own word for the error."""
    told = (await call("POST", f"{_base()}/{method}", headers=_authorized(place), body=body)).json()
    if told.get("ok") is True:
        return told
    error = str(told.get("error") or "no_answer")
    raise NotSent(error, retry_after=5 if error in _WORTH_ANOTHER or error == "no_answer" else None)


def _base() -> str:
    return api_address(ChannelKind.SLACK, "https://slack.com/api")
