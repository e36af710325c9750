"""Dry runs of a gate's version over recorded messages, answers and calls.

`source`: what a room above registers to read them; `runs`: a dry run; `evaluation`: one decision; `api`: over HTTP.
"""
