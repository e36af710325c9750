from django.apps import AppConfig


class WorkConfig(AppConfig):
    name = "apps.work"
    label = "work"

    def ready(self) -> None:
        from apps.guard.enums import Intent
        from apps.guard.registry import register
        from apps.skills.ports import Library, register_library
        from apps.work import library, receivers  # noqa: F401  (connects to cards and the bus)
        from apps.work.reading import read_file

        register(Intent.READ_FILE, read_file)
        register_library(Library(library.shelf, library.edit))
