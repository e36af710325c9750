"""Move one company to another installation: close it, export it, import it, open it there.

An export is a folder with `manifest.json`, which names every other file with its size and SHA-256. It is complete or
absent, like a backup. Secrets, approvers' keys and certified policy leave the installation under two transport keys
made for this export, which only its passphrase opens; the installation's own keys stay where they are. The manifest is
authenticated with one of them, so a changed export is refused. See docs/operations.md, Move a company.
"""
