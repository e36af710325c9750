"""Verify the audit chains: one line a chain; exit 1 and the first bad entry if one is broken (contract interfaces).

What is unbroken but could not be proven is listed on stderr, one line each; it is not a failure.
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

from apps.audit import checkpoint_file
from apps.audit.bundles import verify_bundle
from apps.audit.queries import Chain, ChainView, chains, find_chain, read_chain
from apps.audit.rules import ChainBreak, Checkpoint, Verification, key_id_of, unproven_notes, verify_entries
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
        keys = frozenset(public_key for public_key in key if is_root(public_key))
        if len(keys) < len(set(key)):
            raise CommandError("--key is a public key of 64 hex digits", returncode=2)
        # The pool logs every attempt to connect; the outcome is one sentence below.
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
        results = _bundle(bundle, keys, tenant, checkpoints) if bundle else _database(tenant, keys, checkpoints)
        unbroken = True
        try:
            for name, result in results:
                unbroken = unbroken and result.broken is None
                self.stdout.write(_line(name, result))
                for note in result.unproven:
                    self.stderr.write(f"unproven tenant={name} {note}")
        except (OperationalError, InterfaceError, psycopg.Error):
            raise CommandError("The database cannot be reached, so no chain was checked.", returncode=2) from None
        except ProgrammingError:
            message = "The database lacks the tables of this release, so no chain was checked: run migrate."
            raise CommandError(message, returncode=2) from None
        if not unbroken:
            sys.exit(1)


def _line(name: str, result: Verification) -> str:
    if result.broken:
        return f"broken tenant={name} seq={result.broken.seq} reason={result.broken.reason}"
    return f"ok tenant={name} entries={result.entries} head={result.head}"


def _bundle(
    path: Path, keys: frozenset[str], tenant: str, checkpoints: Path | None
) -> Iterator[tuple[str, Verification]]:
    try:
        kept = checkpoints.read_text(encoding="utf-8", errors="replace").splitlines() if checkpoints else []
        with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            name, result = verify_bundle(file, trusted_keys=keys, kept=kept)
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be read: {error.strerror}", returncode=2) from None
    if tenant and tenant != name:
        raise CommandError(f"{path} is the chain of {name}, not of {tenant}", returncode=2)
    yield name, result


def _database(tenant: str, keys: frozenset[str], checkpoints: Path | None) -> Iterator[tuple[str, Verification]]:
    """Verify every chain, and report each that is known outside and gone from the database."""
    named = find_chain(tenant) if tenant else None
    if tenant and named is None:
        raise CommandError(f"there is no tenant {tenant}", returncode=2)
    known, here = checkpoint_file.read_newest(checkpoints), [named] if named else chains()
    for chain in here:
        yield chain.name, _verified(chain, keys, known.get(str(chain.id)))
    for missing in () if named else sorted(known.keys() - {str(chain.id) for chain in here}):
        yield missing, Verification(0, "", ChainBreak(1, "tail"))


def _verified(chain: Chain, trusted: frozenset[str], kept: Checkpoint | None) -> Verification:
    pinned = {key_id_of(bytes.fromhex(key)): key for key in trusted} or checkpoint_file.pinned_keys()

    def use(view: ChainView) -> Verification:
        keys = pinned if trusted else {**view.keys, **pinned}
        claims = [*view.checkpoints, *([kept] if kept else [])]
        result = verify_entries(view.entries, chain=str(chain.id), head=view.head, checkpoints=claims, keys=keys)
        left = unproven_notes(result, claims, chain=str(chain.id), pinned=pinned, outside=kept, now=now())
        return replace(result, unproven=() if result.broken else left)

    return read_chain(chain, use)
