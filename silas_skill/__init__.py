"""What scripts of skills may import beside the standard library.

The platform mounts this package at `/sandbox/lib`, read-only, wherever it runs a script of a skill. It is not part of a
skill's content, so its functions keep their names and what they do: a change is an addition.
"""
