"""The channels of this installation, each registered once."""

from __future__ import annotations

from apps.messengers.email.adapter import EmailAdapter
from apps.messengers.ports import register
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
