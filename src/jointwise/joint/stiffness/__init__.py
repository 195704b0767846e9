"""Stiffness of a gear: the spring between rotor and link."""
