from django.apps import AppConfig


class WidgetsConfig(AppConfig):
    name = "apps.widgets"
