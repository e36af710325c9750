"""`manage.py up` in the list of commands; `manage.py` itself runs `silas_platform.up.run` without Django."""

from django.core.management.base import BaseCommand

from silas_platform.up.run import HELP, add_arguments, start


class Command(BaseCommand):
    help = HELP
    requires_system_checks = []  # noqa: RUF012  (nothing runs here)
    add_arguments = staticmethod(add_arguments)

    def handle(self, *args: object, **options: object) -> None:
        start(demo=not options["no_demo"], work=not options["no_worker"])
