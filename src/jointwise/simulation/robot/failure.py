"""What is raised when a simulation leaves all bounds."""

from __future__ import annotations

from jointwise.errors import JointwiseError

ADVICE = "Lower the gains, or raise rate or substeps."


class InstabilityError(JointwiseError):
    """The motion exploded: `period` is the control period in which it did, `time` its start (s), `joint` the joint."""

    def __init__(self, period: int, time: float, joint: str, advice: str = ADVICE) -> None:
        """Say when and where, and what usually helps."""
        super().__init__(
            f"the simulation became unstable at t = {time:.4g} s (period {period}, joint '{joint}'): the gains are too "
            f"high for the control rate, or the step is too long. {advice}"
        )
        self.period = period
        self.time = time
        self.joint = joint

    def advised(self, advice: str) -> InstabilityError:
        """Return the same with other advice."""
        return InstabilityError(self.period, self.time, self.joint, advice)


class BatchError(JointwiseError):
    """A member of a batch failed; `member` counts from 0, the cause is the exception's ``__cause__``."""

    def __init__(self, member: int, count: int, value: object, problem: Exception) -> None:
        """Say which of how many, what it was, and why."""
        self.member = member
        what = f" ({value!r})" if isinstance(value, int | float | str) else ""
        super().__init__(f"batch: member {member + 1} of {count}{what} failed: {problem}")
