"""Does the audit chain hold? One line a chain; exit 1 and the first bad entry if one does not (interfaces)."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from apps.audit.bundles import inspect_bundle
from apps.audit.queries import Chain, ChainView, chain_named, chains, read_chain
from apps.audit.rules import Finding, inspect


class Command(BaseCommand):
    help = "Checks the audit chains of all tenants, of one, or an exported bundle."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", default="", help="slug of one tenant; @platform for the platform's own chain")
        parser.add_argument("--bundle", type=Path, help="a file made by audit_export, checked without the database")
        parser.add_argument("--key", action="append", default=[], help="public key (hex) that must have signed")

    def handle(self, *, tenant: str, bundle: Path | None, key: list[str], **_: object) -> None:
        found = _bundle(bundle, frozenset(key), tenant) if bundle else _database(tenant, frozenset(key))
        sound = True
        for name, finding in found:
            sound = sound and finding.broken is None
            self.stdout.write(_line(name, finding))
        if not sound:
            sys.exit(1)


def _line(name: str, finding: Finding) -> str:
    if finding.broken:
        return f"broken tenant={name} seq={finding.broken.seq} reason={finding.broken.reason}"
    return f"ok tenant={name} entries={finding.entries} head={finding.head}"


def _bundle(path: Path, keys: frozenset[str], tenant: str) -> Iterator[tuple[str, Finding]]:
    try:
        with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            name, finding = inspect_bundle(file, trusted_keys=keys)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", returncode=2) from None
    if tenant and tenant != name:
        raise CommandError(f"{path} is the chain of {name}, not of {tenant}", returncode=2)
    yield name, finding


def _database(tenant: str, keys: frozenset[str]) -> Iterator[tuple[str, Finding]]:
    wanted = chain_named(tenant) if tenant else None
    if tenant and wanted is None:
        raise CommandError(f"there is no tenant {tenant}", returncode=2)
    for chain in [wanted] if wanted else chains():
        yield chain.name, _verified(chain, keys)


def _verified(chain: Chain, trusted: frozenset[str]) -> Finding:
    def use(view: ChainView) -> Finding:
        keys = {key_id: key for key_id, key in view.keys.items() if not trusted or key in trusted}
        return inspect(view.entries, chain=str(chain.id), head=view.head, checkpoints=view.checkpoints, keys=keys)

    return read_chain(chain, use)
