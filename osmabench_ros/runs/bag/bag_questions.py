"""Questions that a language model writes about the images of a bag, asked of its map."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from osmabench_ros.base.contract import COMPRESSED_IMAGE, IMAGE
from osmabench_ros.base.files import write_json
from osmabench_ros.base.image_codec import color_of
from osmabench_ros.base.progress import Progress
from osmabench_ros.errors import SequenceError, errors_as
from osmabench_ros.language.client import ModelClient
from osmabench_ros.language.model import ImagePart
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs.bag_content import BagContent
from osmabench_ros.sequences.bags.bag import Bag
from osmabench_ros.vqa.answering.language_model import LanguageModelAnswerer
from osmabench_ros.vqa.evaluation import answered_and_judged
from osmabench_ros.vqa.judging.language_model import LanguageModelJudge
from osmabench_ros.vqa.llm_generated.pipeline import FrameImage, QuestionWriter
from osmabench_ros.vqa.scores import records, unserved_categories

SUITE = 'written_questions'
_COLOR_NAMES = ('color', 'colour', 'rgb')
_JPEG_QUALITY = 90


def written_question_records(
    bag: Bag,
    content: BagContent,
    semantic_map: SemanticMap,
    client: ModelClient,
    directory: Path,
    *,
    most_frames: int,
    scene: str,
    progress: Progress,
) -> list[MetricRecord]:
    """Let a model write questions about frames, answer them from the map, and judge.

    The right answers are the model's own, from at most `most_frames` images: they are no ground
    truth. Raises SequenceError without images, IncompleteError if the server failed.
    """
    frames = color_frames(bag, content, most_frames)
    written = QuestionWriter(client).write(frames, scene=scene, progress=progress)
    questions = list(written.questions)
    write_json(directory / 'generation.json', {**written.to_json(), 'model': client.name})
    _, verdicts = answered_and_judged(
        semantic_map,
        questions,
        LanguageModelAnswerer(client),
        LanguageModelJudge(client),
        directory,
        progress,
    )
    if not questions:
        return [MetricRecord.not_applicable(SUITE, '', 'accuracy')]
    return records(
        SUITE,
        '',
        'accuracy',
        questions,
        verdicts,
        not_applicable=unserved_categories(semantic_map, questions),
    )


def color_frames(bag: Bag, content: BagContent, most: int) -> list[FrameImage]:
    """Return evenly spread colour images, numbered by their place in the bag."""
    topic = _color_topic(content)
    count = len(content.topics[topic].log_ns)
    wanted = set(np.linspace(0, count - 1, min(most, count)).astype(int).tolist())
    return [
        FrameImage(index, _encoded(message.deserialise(), topic))
        for index, message in enumerate(bag.messages((topic,)))
        if index in wanted
    ]


def _color_topic(content: BagContent) -> str:
    """Return the topic with the most images among those with a colour name in theirs."""
    found = [
        topic
        for topic, times in content.topics.items()
        if times.message_type in (IMAGE, COMPRESSED_IMAGE)
        and any(part in topic.lower() for part in _COLOR_NAMES)
    ]
    if not found:
        raise SequenceError(
            'the bag has no topic of colour images (sensor_msgs/Image or CompressedImage with '
            '"color" or "rgb" in its name) to write questions about; leave out --model'
        )
    return max(sorted(found), key=lambda topic: len(content.topics[topic].log_ns))


def _encoded(message: Any, topic: str) -> ImagePart:
    """Return an image encoded for a language model."""
    if hasattr(message, 'format'):
        kind = 'image/png' if 'png' in message.format.lower() else 'image/jpeg'
        return ImagePart(np.asarray(message.data, np.uint8).tobytes(), kind)
    with errors_as(SequenceError, f'topic "{topic}"', ValueError):
        pixels = color_of(message)
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, 'JPEG', quality=_JPEG_QUALITY)
    return ImagePart(buffer.getvalue(), 'image/jpeg')
