"""Motor side of a joint: drive gain and offset, current loop, and friction by the direction of power flow.

Gains follow from a payload (`payload`, with `data` and `fit`), from the known links (`links`) or from the targets of
the controller (`targets`); `result` holds them. `drives` identifies inertia and gain of all drives from one log.
`current_loop` identifies lag and limit of the current.
"""
