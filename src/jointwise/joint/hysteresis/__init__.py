"""Hysteresis of a joint: Maxwell-slip models, rate-dependent ones, LuGre, and static laws for comparison.

`data` cuts a record into swings and holds what is known beforehand, `law` is the friction law, `normal_equations` and
`fit` estimate it with its uncertainty, `identify` is the entry point, `result` makes the part.
"""
