"""The channels of this installation, each registered once."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from apps.messengers.email.adapter import EmailAdapter
from apps.messengers.enums import ChannelKind
from apps.messengers.ports import adapters, register
from apps.messengers.slack.adapter import SlackAdapter
from apps.messengers.sms.adapter import SmsAdapter
from apps.messengers.teams.adapter import TeamsAdapter
from apps.messengers.telegram.adapter import TelegramAdapter
from apps.messengers.whatsapp.adapter import WhatsAppAdapter

register(EmailAdapter())
register(SlackAdapter())
register(SmsAdapter())
register(TeamsAdapter())
register(TelegramAdapter())
register(WhatsAppAdapter())

if missing := set(ChannelKind) - {adapter.kind for adapter in adapters()}:
    raise ImproperlyConfigured(
        f"E_CHANNEL_KIND: no adapter for {', '.join(sorted(missing))} in apps.messengers.adapters"
    )
