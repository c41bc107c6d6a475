"""ROS 2 bags: read, written and played, without ROS."""
