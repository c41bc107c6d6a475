"""One file of a recording, while it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from osmabench_ros.sequences.bag_metadata import FileSummary
from osmabench_ros.sequences.guarded_file import GuardedFile
from osmabench_ros.sequences.recording_options import RecordedTopic


@dataclass
class McapFile:
    """A file being written, with the channels and schemas it has as yet; its writer is started."""

    file: GuardedFile
    writer: Any
    summary: FileSummary
    channels: dict[str, int] = field(default_factory=dict)
    schemas: dict[str, int] = field(default_factory=dict)
    pending_bytes: int = 0
    written_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """About what it will be once the chunk in progress is written."""
        if self.file.tell() != self.written_bytes:
            self.written_bytes, self.pending_bytes = self.file.tell(), 0
        return self.written_bytes + self.pending_bytes

    def put(self, topic: RecordedTopic, log_ns: int, publish_ns: int, data: bytes) -> None:
        """Write a message; a disk that fails raises an OSError."""
        channel = self.channels.get(topic.topic)
        if channel is None:
            channel = self.channels[topic.topic] = self._channel(topic)
        self.writer.add_message(channel, log_ns, data, publish_ns)
        self.pending_bytes += len(data)
        self.summary.count(topic.topic, log_ns)

    def _channel(self, topic: RecordedTopic) -> int:
        kind = topic.message_type
        if kind not in self.schemas:
            self.schemas[kind] = self.writer.register_schema(
                kind, 'ros2msg', topic.definition.encode()
            )
        metadata = {
            'offered_qos_profiles': yaml.safe_dump([item.to_metadata() for item in topic.qos]),
            'topic_type_hash': topic.type_hash,
        }
        number: int = self.writer.register_channel(
            topic.topic, 'cdr', self.schemas[kind], metadata
        )
        return number
