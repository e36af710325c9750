from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "apps.memory"
    label = "memory"

    def ready(self) -> None:
        from apps.memory import handlers  # noqa: F401  (registers bus handlers and clean-up)
