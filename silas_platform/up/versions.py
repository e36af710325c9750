"""Report servers that lack known security fixes.

By product and branch: the first release with all fixes that were known when this was written. Sources: release notes
of valkey.io and redis.io, and postgresql.org's announcements of 2026-05-14 and 2026-08-13. A branch that is not listed
is no longer maintained, unless it is newer than all that are.
"""

from collections.abc import Iterable, Mapping

import psycopg

from kernel.redis_servers import connect

# CVE-2025-49844 (Lua), CVE-2026-23479 and CVE-2026-25243 (blocked clients, RESTORE), CVE-2026-56684, CVE-2026-63639.
FIXED: dict[str, Mapping[str, tuple[int, ...]]] = {
    "Valkey": {"7.2": (7, 2, 13), "8.0": (8, 0, 9), "8.1": (8, 1, 6), "9.0": (9, 0, 5), "9.1": (9, 1, 1)},
    "Redis": {
        "6.2": (6, 2, 20),
        "7.2": (7, 2, 11),
        "7.4": (7, 4, 6),
        "8.0": (8, 0, 4),
        "8.2": (8, 2, 2),
        "8.6": (8, 6, 3),
    },
    "PostgreSQL": {"16": (16, 14), "17": (17, 10), "18": (18, 6)},
}
_PARTS = {"PostgreSQL": 1}


def version_fault(product: str, version: str) -> str:
    """Describe what is wrong with a server of this version; "" when nothing is known."""
    installed = tuple(int(part) for part in version.split(".") if part.isdigit())
    branches = {tuple(map(int, branch.split("."))): fixed for branch, fixed in FIXED[product].items()}
    branch = installed[: _PARTS.get(product, 2)]
    if branch > max(branches):
        return ""
    fixed = branches.get(branch)
    if fixed is not None and installed >= fixed:
        return ""
    required = ".".join(map(str, fixed or branches[max(branches)]))
    return f"{product} {version} lacks security fixes: use {required} or newer"


def server_faults(*, database: str, redis_urls: Iterable[str]) -> list[str]:
    """Faults of the servers at these addresses, each once. Raises what their clients raise."""
    with psycopg.connect(database) as connection:
        number = connection.info.server_version
    faults = [version_fault("PostgreSQL", f"{number // 10_000}.{number % 10_000}")]
    for url in redis_urls:
        with connect(url) as client:
            info: dict[str, object] = client.info("server")
        product = "Valkey" if "valkey_version" in info else "Redis"
        faults.append(version_fault(product, str(info.get("valkey_version") or info["redis_version"])))
    return list(dict.fromkeys(filter(None, faults)))
