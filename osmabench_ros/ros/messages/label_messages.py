"""Label sets to messages and back."""

from __future__ import annotations

from std_msgs.msg import ColorRGBA

from osmabench_ros.errors import ConfigError, ContractError, errors_as
from osmabench_ros.msg import LabelClass as LabelClassMessage
from osmabench_ros.msg import LabelInfo
from osmabench_ros.reports.palette import Rgb, class_colors
from osmabench_ros.ros.messages.poses import stamp_to_message
from osmabench_ros.semantics.labels import LabelClass, LabelSet


def color_message(color: Rgb, alpha: float) -> ColorRGBA:
    """Return a colour message of 8-bit channels."""
    red, green, blue = (channel / 255 for channel in color)
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)


def label_set_to_message(label_set: LabelSet, stamp_ns: int) -> LabelInfo:
    """Return the message of a label set."""
    colors = class_colors(label_set)
    classes = [
        LabelClassMessage(
            id=item.id,
            name=item.name,
            structure=item.structure,
            color=color_message(colors[item.id], 1.0),
        )
        for item in label_set.classes
    ]
    message = LabelInfo(name=label_set.name, sha256=label_set.sha256, classes=classes)
    message.header.stamp = stamp_to_message(stamp_ns)
    return message


def label_set_from_message(message: LabelInfo, topic: str) -> LabelSet:
    """Return the label set of a message; raises ContractError if it or its digest is wrong."""
    with errors_as(ContractError, f'topic "{topic}"', ConfigError):
        label_set = LabelSet(
            message.name,
            tuple(LabelClass(item.id, item.name, item.structure) for item in message.classes),
        )
    if message.sha256 and message.sha256 != label_set.sha256:
        raise ContractError(f'topic "{topic}": sha256 does not match the classes')
    return label_set
