"""A virtual UR: the digital robot behind an RTDE server, to rehearse recordings without a robot."""

from jointwise.virtual_ur.controller import VirtualUr, make_virtual_ur, serve

__all__ = ["VirtualUr", "make_virtual_ur", "serve"]
