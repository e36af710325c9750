"""A program that agent clients run before each tool call: 0 is go, 2 is no, with the reason on stderr.

The program ends with each call and the agent's execution goes on: what a person allowed passes at the next try.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from silas_safety.loop import Held, Loop, Refused

GO, NO = 0, 2


def hint_of(call: dict[str, Any]) -> str:
    """The call as words of its own, its tool's name first; cut nowhere, because what is cut away is not judged."""
    given = call.get("tool_input")
    said = given.get("command") if isinstance(given, dict) and isinstance(given.get("command"), str) else None
    return f"{call.get('tool_name', 'a tool')}: {said or json.dumps(given, ensure_ascii=False)}"


async def ask(call: dict[str, Any]) -> str:
    """Empty for a go, else why not."""
    url, key = os.environ.get("SILAS_URL", ""), os.environ.get("SILAS_SAFETY_KEY", "")
    try:
        async with Loop(url, key=key, agent=os.environ.get("SILAS_AGENT", "hook"), stays=True) as loop:
            await loop.step(hint_of(call))
    except (Held, Refused) as no:
        return str(no)
    return ""


def main() -> int:
    try:
        why = asyncio.run(ask(json.load(sys.stdin)))
    except Exception as error:  # noqa: BLE001 (whatever goes wrong, the answer is no)
        why = f"The safety hook failed: {type(error).__name__}"
    if why:
        sys.stderr.write(why + "\n")
    return NO if why else GO


if __name__ == "__main__":
    raise SystemExit(main())
