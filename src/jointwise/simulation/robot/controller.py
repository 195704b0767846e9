"""The affine controller that runs inside the native loop: a law of the model, under the name it had here."""

from jointwise.model.control_law import FEEDS, GAINS, REFERENCES, AffineControl

__all__ = ["FEEDS", "GAINS", "REFERENCES", "AffineControl"]
