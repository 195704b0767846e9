"""Friction over speed, from runs at constant speed."""
