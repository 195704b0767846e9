"""Friction over load, from slow runs forward and back under gravity."""
