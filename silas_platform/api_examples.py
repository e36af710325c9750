"""Examples in the OpenAPI schema, by operation: what is sent, and what is answered.

`tests/platform/test_api_examples.py` validates each against the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from drf_spectacular.utils import OpenApiExample

_CHATBOT = "5f3b1c9e-6d1f-4f0a-9a57-0c6f2f6f1d11"
_SESSION = "0b7f5a52-3e0d-4c7a-8a0e-9d2a4c1f7e22"
_CARD = "c2a7d0f4-5b8e-4a63-b1d9-7e4f0a9c3b33"
_DOCUMENT = "8d4e2b6a-1f7c-4d92-a3e5-6b0c8f1d2a44"
_VERSION = "3a9c7e1d-2b5f-4e80-9c46-d8f0b7a5e155"
_WEBHOOK = "f1d8c3b7-9e2a-4b54-8f60-a7c5d3e0b266"
_MOMENT = "2026-11-27T09:30:00Z"
_ARTICLE = {"document_id": _DOCUMENT, "title": "Returns", "sentence": "Parcels come back within thirty days."}
_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

_CONVERSATION: dict[str, Any] = {
    "id": _SESSION,
    "deployment": _CHATBOT,
    "state": "open",
    "snoozed_until": None,
    "owner": "bot",
    "owner_member": None,
    "assignee": None,
    "team": None,
    "priority": "",
    "waiting_since": None,
    "queue": "",
    "labels": [],
    "visitor": {"name": "Ada", "customer": "C-1001", "level": "customer", "attributes": {"plan": "pro"}},
    "language": "en",
    "seq": 2,
    "preview": "Your parcel arrives tomorrow.",
    "last_sender": "bot",
    "asked": "Does my home policy cover a burst pipe?",
    "unread": 1,
    "channel": "",
    "sla": None,
    "created_at": _MOMENT,
    "updated_at": _MOMENT,
}
_CARD_LINE: dict[str, Any] = {
    "id": _CARD,
    "kind": "plan",
    "state": "open",
    "risk": "medium",
    "intent": "Refund 40 pounds for order 1234",
    "rationale": "The parcel was lost.",
    "affected": "Order 1234",
    "about": {"kind": "work_item", "id": _DOCUMENT},
    "deployment": {"id": _CHATBOT, "title": "Shop"},
    "session_id": _SESSION,
    "requested_by": "",
    "assignee": None,
    "payload_hash": _HASH,
    "created_at": _MOMENT,
    "expires_at": "2026-11-28T09:30:00Z",
    "settled_at": None,
    "withdrawal": "",
    "decision": None,
    "question": None,
}
_PASSAGE = {
    "document": _DOCUMENT,
    "version": _VERSION,
    "title": "Returns",
    "url": "https://www.example.com/returns",
    "text": "Parcels come back within thirty days.",
    "start": 11,
    "end": 48,
    "nearness": 82,
    "citation": "within thirty days",
}
_EVENT = (
    "id: 4711\nevent: card.created\n"
    f'data: {{"id": "evt_1", "type": "card.created", "version": 1, "timestamp": "{_MOMENT}",'
    f' "data": {{"card": "{_CARD}", "state": "open"}}}}\n\n'
)
_HOOK = {"url": "https://hooks.example.com/silas", "events": ["card.created", "message.created"]}


def _sent(value: Any) -> OpenApiExample:
    return OpenApiExample("request", value, request_only=True)


def _answered(value: Any, code: int = 200, media_type: str = "application/json") -> OpenApiExample:
    return OpenApiExample("answer", value, response_only=True, status_codes=[str(code)], media_type=media_type)


EXAMPLES: Mapping[str, list[OpenApiExample]] = MappingProxyType(
    {
        "session_assistance_create": [_sent({"kind": "shorter", "text": "Your parcel arrives tomorrow."})],
        "sessions_list": [_answered({"sessions": [_CONVERSATION], "next": ""})],
        "sessions_get": [_answered(_CONVERSATION)],
        "sessions_create": [
            _sent({"deployment": _CHATBOT, "locale": "en", "attributes": {"plan": "pro"}}),
            _answered({"id": _SESSION, "level": "public", "identity_problem": ""}, 201),
        ],
        "sessions_edit": [_sent({"owner": "human", "state": "open"})],
        "session_visitor_messages_create": [
            _sent({"text": "Where is my parcel?"}),
            _answered({"seq": 1, "repeated": False}, 202),
        ],
        "session_messages_create": [
            _sent({"text": "Your refund is on its way."}),
            _answered(
                {
                    "seq": 3,
                    "kind": "message",
                    "sender": "human",
                    "author": None,
                    "text": "Your refund is on its way.",
                    "data": {},
                    "created_at": _MOMENT,
                },
                201,
            ),
        ],
        "session_files_create": [
            _answered(
                {
                    "id": _DOCUMENT,
                    "seq": 4,
                    "sender": "human",
                    "name": "return-label.pdf",
                    "kind": "pdf",
                    "size": 48213,
                    "sha256": _HASH,
                    "created_at": _MOMENT,
                },
                201,
            ),
        ],
        "cards_list": [_answered({"cards": [_CARD_LINE], "next": ""})],
        "cards_ask": [_sent({"text": "Which flat do you mean, 3 or 4?", "hours": 24})],
        "cards_decide": [
            _sent(
                {
                    "face_hash": _HASH,
                    "answered_at": _MOMENT,
                    "key_id": "9f86d081884c7d65",
                    "signature": "MEUCIQDx0Tg0…",
                    "choice": "approve",
                }
            ),
            _answered({"outcome": "decided", "card_id": _CARD, "state": "decided"}),
        ],
        "submissions_create": [_sent({"title": "Returns", "text": "Parcels come back within thirty days."})],
        "knowledge_search": [
            _sent({"question": "How long can I return a parcel?", "deployment": _CHATBOT, "level": "public"}),
            _answered({"passages": [_PASSAGE], "answers": True}),
        ],
        "widget_article_search": [
            _sent({"query": "send it back"}),
            _answered({"articles": [_ARTICLE]}),
        ],
        "events_stream": [_answered(_EVENT, media_type="text/event-stream")],
        "webhooks_create": [
            _sent(_HOOK),
            _answered(
                {**_HOOK, "id": _WEBHOOK, "enabled": True, "created_at": _MOMENT, "secret": "whsec_MfKQ9r8GKYqrTw"}, 201
            ),
        ],
        "oauth_apps_change": [_sent({"redirect_uris": ["https://app.example/callback"], "scopes": ["sessions:read"]})],
        "contacts_erase": [
            _answered(
                {
                    "id": _DOCUMENT,
                    "person": f"contact:{_CHATBOT}",
                    "state": "running",
                    "erased": {},
                    "requested_at": _MOMENT,
                    "ended_at": None,
                },
                202,
            ),
        ],
        "webhooks_change": [_sent({"enabled": False})],
    }
)
