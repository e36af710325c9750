"""Verify the audit chains: one line a chain; exit 1 and the first bad entry where one does not hold (interfaces).

What holds but could not be proven is said on stderr, one line each: it is no failure.
"""

from __future__ import annotations

import logging
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, ProgrammingError

from apps.audit import outside
from apps.audit.bundles import inspect_bundle
from apps.audit.queries import Chain, ChainView, chain_named, chains, read_chain
from apps.audit.rules import Break, Checkpoint, Finding, inspect, key_id_of, unproven
from kernel.clock import now
from kernel.trust import is_root


class Command(BaseCommand):
    help = "Checks the audit chains of all tenants, of one, or an exported bundle."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", default="", help="slug of one tenant; @platform for the platform's own chain")
        parser.add_argument("--bundle", type=Path, help="a file made by audit_export, checked without the database")
        parser.add_argument("--key", action="append", default=[], help="public key (hex) that must have signed")
        parser.add_argument("--checkpoints", type=Path, help="the checkpoints kept outside; else SILAS_CHECKPOINTS")

    def handle(
        self, *, tenant: str, bundle: Path | None, key: list[str], checkpoints: Path | None, **_: object
    ) -> None:
        keys = frozenset(each for each in key if is_root(each))
        if len(keys) < len(set(key)):
            raise CommandError("--key is a public key of 64 hex digits", returncode=2)
        # The pool tells each try to connect; what came of them is one sentence below.
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
        found = _bundle(bundle, keys, tenant, checkpoints) if bundle else _database(tenant, keys, checkpoints)
        sound = True
        try:
            for name, finding in found:
                sound = sound and finding.broken is None
                self.stdout.write(_line(name, finding))
                for note in finding.unproven:
                    self.stderr.write(f"unproven tenant={name} {note}")
        except (OperationalError, InterfaceError, psycopg.Error):
            raise CommandError("The database cannot be reached, so no chain was checked.", returncode=2) from None
        except ProgrammingError:
            message = "The database has not the tables of this release, so no chain was checked: run migrate."
            raise CommandError(message, returncode=2) from None
        if not sound:
            sys.exit(1)


def _line(name: str, finding: Finding) -> str:
    if finding.broken:
        return f"broken tenant={name} seq={finding.broken.seq} reason={finding.broken.reason}"
    return f"ok tenant={name} entries={finding.entries} head={finding.head}"


def _bundle(path: Path, keys: frozenset[str], tenant: str, checkpoints: Path | None) -> Iterator[tuple[str, Finding]]:
    try:
        kept = checkpoints.read_text(encoding="utf-8", errors="replace").splitlines() if checkpoints else []
        with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            name, finding = inspect_bundle(file, trusted_keys=keys, kept=kept)
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be read: {error.strerror}", returncode=2) from None
    if tenant and tenant != name:
        raise CommandError(f"{path} is the chain of {name}, not of {tenant}", returncode=2)
    yield name, finding


def _database(tenant: str, keys: frozenset[str], checkpoints: Path | None) -> Iterator[tuple[str, Finding]]:
    """Every chain, and every one that is known outside and gone from the database."""
    wanted = chain_named(tenant) if tenant else None
    if tenant and wanted is None:
        raise CommandError(f"there is no tenant {tenant}", returncode=2)
    kept, here = outside.newest(checkpoints), [wanted] if wanted else chains()
    for chain in here:
        yield chain.name, _verified(chain, keys, kept.get(str(chain.id)))
    for gone in () if wanted else sorted(kept.keys() - {str(chain.id) for chain in here}):
        yield gone, Finding(0, "", Break(1, "tail"))


def _verified(chain: Chain, trusted: frozenset[str], kept: Checkpoint | None) -> Finding:
    pinned = {key_id_of(bytes.fromhex(key)): key for key in trusted} or outside.pinned_keys()

    def use(view: ChainView) -> Finding:
        keys = pinned if trusted else {**view.keys, **pinned}
        claims = [*view.checkpoints, *([kept] if kept else [])]
        finding = inspect(view.entries, chain=str(chain.id), head=view.head, checkpoints=claims, keys=keys)
        left = unproven(finding, claims, chain=str(chain.id), pinned=pinned, outside=kept, now=now())
        return replace(finding, unproven=() if finding.broken else left)

    return read_chain(chain, use)
