"""Run language models and hold them to structured outputs. Plain Python: no tables, no Django, no tool dispatch.

The entry points are `agents.run_proxy`, `run_planner` and `run_executor`. A model here never performs a side effect:
every tool call goes through the toolset that the caller passes (spec 7, contract silas 4.24).
"""
