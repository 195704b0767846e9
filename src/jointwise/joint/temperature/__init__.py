"""Friction over temperature, from a warm-up."""
