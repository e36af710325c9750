"""Back up an installation and restore it: database, visitors' files, checkpoints and, where asked, sealed keys.

A backup is a folder (or a prefix in a bucket) with `manifest.json`, which names every other file with its size and
SHA-256. It is complete or absent: a folder gets its name when everything is on the disk, and in a bucket the manifest
is written last. See docs/operations.md, Backups.
"""
