"""Kinematic error and position-dependent backlash of a gear."""
