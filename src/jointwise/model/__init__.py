"""What torque a motion needs."""
