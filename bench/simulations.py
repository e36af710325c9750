"""How long simulations take: `python -m bench.simulations [SCENARIOS] [WORKERS]`.

Scenarios of six turns with the demo's shop and the built-in model, in its isolated copy, on servers of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from bench.stage import servers

# What a customer of the shop asks, one after another.
LINES = (
    "How long do I have to return something?",
    "How much is standard delivery?",
    "Do you deliver to Belgium?",
    "How long is the warranty on clocks?",
    "How long is a gift card valid?",
    "Thank you, that is all",
)


def measure(scenarios: int, workers: int) -> None:
    with servers() as env:
        from apps.simulations import services
        from apps.tenants.queries import deployment_by_key
        from kernel.tenancy import tenant_scope
        from silas_platform import demo

        demo.seed(progress=lambda line: None)
        shop = deployment_by_key("demo-harbor")
        assert shop is not None
        with tenant_scope(shop.tenant_id):
            suite = services.save_suite(shop, "measured")
            for number in range(scenarios):
                lines = [{"say": line} for line in LINES]
                services.save_scenario(suite, f"visitor {number}", lines=lines, checks=[{"kind": "answered"}])
        began = time.monotonic()
        root = Path(__file__).parents[1]
        argv = [sys.executable, root / "manage.py", "simulate", "demo-harbor", "--suite", "measured"]
        subprocess.run([*argv, "--workers", str(workers)], env={**os.environ, **env}, check=False, cwd=root)
        took = time.monotonic() - began
    turns = scenarios * len(LINES)
    load = os.getloadavg()[0]
    print(f"{scenarios} scenarios, {turns} turns, {workers} workers: {took:.0f} s, {took / scenarios:.3f} s a scenario")
    print(f"load of the machine at the end: {load:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, int(sys.argv[2]) if len(sys.argv) > 2 else 2)
