"""How does a skill get written here? Somebody describes it, a model drafts it, its tests run, a person says yes.

`writing` asks the model, `trying` runs a draft's tests, `services` keeps drafts; nothing of a draft is on any disk
outside of the sandbox (spec 10.5, docs/adr/0074).
"""
