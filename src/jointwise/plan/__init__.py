"""What to record next for one joint: trajectories, robot programs and the reasons, one experiment a phenomenon."""

from jointwise.plan.files import write_plan
from jointwise.plan.plan import CLEARANCE, Plan, Step, make_plan
from jointwise.plan.purpose import PURPOSES, Purpose
from jointwise.plan.urscript import urscript

__all__ = ["CLEARANCE", "PURPOSES", "Plan", "Purpose", "Step", "make_plan", "urscript", "write_plan"]
