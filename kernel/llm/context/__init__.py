"""What may a model see of everything that is known? The window: four zones, a budget, and what leaves first.

`enums` the words, `items` what stands in a window, `budget` how much room there is, `rules` who leaves (pure), `scorer`
the model that may be asked when the rules are not enough, `metadata` how many tools are named. The harness alone
decides here (spec 5.7): no model pins, drops or words anything again. `kernel.llm.render` writes what is left.
"""
