"""Export a tenant's chain into a file that anyone can verify with tools/verify_audit.py (contract interfaces)."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from apps.audit.bundles import write_bundle
from apps.audit.checkpoints import write_checkpoint
from apps.audit.queries import ChainView, find_chain, read_chain


class Command(BaseCommand):
    help = "Exports one tenant's audit chain, with a fresh checkpoint when this process holds the signing key."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="slug, or @platform for the platform's own chain")
        parser.add_argument("file", type=Path)

    def handle(self, *, tenant: str, file: Path, **_: object) -> None:
        chain = find_chain(tenant)
        if chain is None:
            raise CommandError(f"there is no tenant {tenant}", returncode=2)
        write_checkpoint(chain)

        def use(view: ChainView) -> str:
            write_bundle(view, file)
            signers = ",".join(sorted({view.keys.get(row.key_id, row.key_id) for row in view.checkpoints})) or "none"
            return f"exported tenant={tenant} entries={view.head.seq} head={view.head.entry_hash} keys={signers}"

        try:
            self.stdout.write(read_chain(chain, use))
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}", returncode=2) from None
