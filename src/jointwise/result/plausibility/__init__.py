"""Whether data and declaration belong together, and which other declaration would explain the data better."""

from jointwise.result.plausibility.wording import Setup, refusal, setup_entry, setup_of, undecided_text

__all__ = ["Setup", "refusal", "setup_entry", "setup_of", "undecided_text"]
