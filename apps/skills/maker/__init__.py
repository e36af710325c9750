"""Write skills here: a member describes one, a model drafts it, its tests run, a person approves it.

`writer` asks the model, `draft_tests` runs a draft's tests, `services` stores drafts; a draft is on no disk outside of
the sandbox (spec 10.5).
"""
