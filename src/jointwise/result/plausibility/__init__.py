"""Whether data and declaration belong together, and which other declaration would explain the data better."""

from jointwise.result.plausibility.check import Check, refusal, undecided_text, with_status, worst_status

__all__ = ["Check", "refusal", "undecided_text", "with_status", "worst_status"]
