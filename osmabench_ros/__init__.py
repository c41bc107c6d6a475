"""OSMa-Bench for ROS 2; extend_path joins the generated osmabench_ros.msg to this package."""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
