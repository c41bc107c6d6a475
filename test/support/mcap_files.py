"""MCAP files of any records, sound or not."""

import lz4.frame
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.records import Channel, Chunk, ChunkIndex, Footer, Header, Message, Schema, Statistics

STRING = 'std_msgs/msg/String'
TEXT = b'\0\1\0\0\6\0\0\0hello\0'


def built(*records):
    builder = RecordBuilder()
    for record in records:
        record.write(builder)
    return builder.end()


def schema(number=1, name=STRING, text='string data\n'):
    return Schema(id=number, name=name, encoding='ros2msg', data=text.encode())


def channel(number=1, topic='/text', qos=''):
    return Channel(
        id=number, topic=topic, message_encoding='cdr', schema_id=number,
        metadata={'offered_qos_profiles': qos},
    )  # fmt: skip


def message(log_ns=5, data=TEXT, number=1):
    return Message(channel_id=number, log_time=log_ns, publish_time=log_ns, sequence=0, data=data)


def chunk(content, compression='', size=None, **times):
    data = {
        '': lambda: content,
        'zstd': lambda: zstandard.ZstdCompressor().compress(content),
        'lz4': lambda: lz4.frame.compress(content),
    }[compression]()
    return Chunk(
        compression=compression, data=data, message_start_time=times.get('start', 0),
        message_end_time=times.get('end', 9), uncompressed_crc=0,
        uncompressed_size=len(content) if size is None else size,
    )  # fmt: skip


def write_mcap(path, *records, summary=True, repeat=1, **statistics):
    """Write records; the summary names chunks, each as often as said, and all topics."""
    head = b'\x89MCAP0\r\n' + built(Header(profile='ros2', library=''))
    body, indexes = b'', []
    for record in records:
        data = built(record)
        if isinstance(record, Chunk):
            indexes.append(
                ChunkIndex(
                    chunk_length=len(data), chunk_start_offset=len(head) + len(body),
                    compression=record.compression, compressed_size=len(record.data),
                    message_end_time=record.message_end_time, message_index_length=0,
                    message_index_offsets={}, message_start_time=record.message_start_time,
                    uncompressed_size=record.uncompressed_size,
                )
            )  # fmt: skip
        body += data
    topics = [record for record in records if isinstance(record, (Schema, Channel))]
    total = Statistics(
        attachment_count=0, channel_count=1, channel_message_counts={1: 1},
        chunk_count=len(indexes), message_count=1, message_end_time=9, message_start_time=0,
        metadata_count=0, schema_count=1,
    )  # fmt: skip
    for name, value in statistics.items():
        setattr(total, name, value)
    start = len(head) + len(body)
    tail = built(*topics, *indexes * repeat, total) if summary else b''
    footer = built(Footer(summary_start=start if summary else 0, summary_offset_start=0,
                          summary_crc=0))  # fmt: skip
    path.write_bytes(head + body + tail + footer + b'\x89MCAP0\r\n')
    return path
