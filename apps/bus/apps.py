from django.apps import AppConfig


class BusConfig(AppConfig):
    name = "apps.bus"
    label = "bus"
