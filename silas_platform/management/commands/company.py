"""`manage.py company close|export|import|open`: move one company to another installation (docs/operations.md)."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from kernel.errors import SilasError
from silas_platform.backup import keys
from silas_platform.backup.manifest import BackupRefused
from silas_platform.moving import closing
from silas_platform.moving.exporting import export_company
from silas_platform.moving.importing import import_company


class Command(BaseCommand):
    help = "Closes, exports, imports and opens one company, to move it to another installation."

    def add_arguments(self, parser: ArgumentParser) -> None:
        steps = parser.add_subparsers(dest="step", required=True)
        close = steps.add_parser("close", help="serve nothing of the company any more; everything is kept")
        close.add_argument("slug")
        close.add_argument("--moved", action="store_true", help="another installation has it now")
        steps.add_parser("open", help="serve a closed company again").add_argument("slug")
        export = steps.add_parser("export", help="write a closed company to a new folder")
        export.add_argument("slug")
        load = steps.add_parser("import", help="load an exported company; needs DATABASE_OWNER_URL")
        for step in (export, load):
            step.add_argument("place", help="the folder")
            step.add_argument("--passphrase", type=Path, required=True, metavar="FILE", help="holds the passphrase")

    def handle(self, *, step: str, **given: object) -> None:
        try:
            self.stdout.write(getattr(self, f"_{step}")(**{name: given.get(name) for name in _GIVEN[step]}))
        except BackupRefused as refusal:
            raise CommandError(str(refusal)) from None
        except SilasError as refusal:
            raise CommandError(f"{refusal.code}: {refusal.message}") from None

    @staticmethod
    def _close(slug: str, moved: bool) -> str:
        closing.close(closing.company_named(slug), moved=moved)
        return f"{'moved' if moved else 'closed'} tenant={slug}"

    @staticmethod
    def _open(slug: str) -> str:
        closing.open_again(closing.company_named(slug))
        return f"opened tenant={slug}"

    @staticmethod
    def _export(slug: str, place: str, passphrase: Path) -> str:
        manifest = export_company(closing.company_named(slug), place, passphrase=keys.read_passphrase(passphrase))
        return f"exported tenant={slug} rows={sum(manifest.rows.values())} files={len(manifest.files)} to {place}"

    @staticmethod
    def _import(place: str, passphrase: Path) -> str:
        manifest = import_company(place, passphrase=keys.read_passphrase(passphrase))
        rows = sum(manifest.rows.values())
        return (
            f"verified: tenant={manifest.slug} rows={rows} audit=ok policy=ok approvals=ok; open it when it may start"
        )


_GIVEN = {
    "close": ("slug", "moved"),
    "open": ("slug",),
    "export": ("slug", "place", "passphrase"),
    "import": ("place", "passphrase"),
}
