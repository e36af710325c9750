"""Three versions of a small room, for tests of an upgrade: an installation of version n, n+1 or n+2 is the platform
with the room as of then (`SILAS_TEST_VERSION`).

The room keeps on each turn, which web processes write, and on each attempt, which workers write, the version that did.
The first version keeps it in `writer`. The second expands: it writes `writer` and `written_by`. The third contracts: it
knows `written_by` only, and its migrations drop `writer`.
"""
