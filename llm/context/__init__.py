"""The context window of a model: four zones, a token budget, and rules for what is evicted first.

`enums` has the values, `items` the window's contents, `budget` the room there is, `rules` the evictions (pure),
`scorer` the model that may be asked when the rules are not enough, `metadata` how many tools are listed. Only the
harness decides here (spec 5.7): no model pins, drops or rewrites anything. `llm.render` writes what is left.
"""
