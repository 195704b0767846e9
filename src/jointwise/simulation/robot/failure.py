"""What is raised when a simulation leaves all bounds."""

from __future__ import annotations

from jointwise.errors import JointwiseError


class InstabilityError(JointwiseError):
    """The motion exploded: `period` is the control period in which it did, `time` its start (s), `joint` the joint."""

    def __init__(self, period: int, time: float, joint: str) -> None:
        """Say when and where, and what usually helps."""
        super().__init__(
            f"the simulation became unstable at t = {time:.4g} s (period {period}, joint '{joint}'): the gains are too "
            "high for the control rate, or the step is too long. Lower the gains, or raise rate or substeps."
        )
        self.period = period
        self.time = time
        self.joint = joint
