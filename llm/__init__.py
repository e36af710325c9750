"""Run language models and hold them to structured outputs. Plain Python: no tables, no Django, no tool dispatch.

The entry points are `agents.run_proxy`, `run_planner` and `run_executor`. A model here never performs a side effect:
every tool call goes through the toolset that the caller passes (spec 7, contract silas 4.24).

pydantic-ai and the other large libraries are imported by the function that uses them first, never with a module: most
processes run no model, and an idle one is 50 MB smaller without (`tests/architecture/test_start.py`).
"""

import os

# pydantic-ai's invitation to an outside service has no place in an operator's log.
os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
