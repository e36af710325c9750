"""What does a model say, and how do we hold it to its shape? Plain Python: no tables, no Django, no tool dispatch.

The doors are `agents.run_proxy`, `run_planner` and `run_executor`. A model of this room never performs a side effect:
every tool call goes through the toolset that the caller gives (spec 7, contract silas 4.24).
"""
