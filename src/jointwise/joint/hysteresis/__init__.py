"""Hysteresis of a joint: Maxwell-slip models, rate-dependent ones, LuGre, and static laws for comparison.

`identify` is the entry point. `data` cuts a record into swings, `law` is the friction law. `methods` fits each model
with what is known beforehand: its start on a grid of limits, then `fit` by variable projection, both on
`normal_equations`. `uncertainty` adds the effect of other treatments of the data, `result` makes the part.
"""
