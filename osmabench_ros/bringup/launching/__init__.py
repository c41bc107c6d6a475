"""Parts of the launch files: arguments, ROS domain, lifecycle and shutdown of nodes."""
