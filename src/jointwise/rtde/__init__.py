"""Real-Time Data Exchange (RTDE) of Universal Robots: protocol, client, recorder and server.

The client only subscribes to outputs of a controller. Nothing in this package can move a robot.
"""
