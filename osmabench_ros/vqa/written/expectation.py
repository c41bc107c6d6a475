"""What writing a question set would ask of a model, before anything is known about the frames."""

from __future__ import annotations

from collections.abc import Sequence

from osmabench_ros.language.model import ModelRequest
from osmabench_ros.vqa.schemas import Description, SeenObject
from osmabench_ros.vqa.written.pipeline import CHECK_BATCH, FrameImage, QuestionWriter
from osmabench_ros.vqa.written.validation import Candidate

# A rich frame: what models write about one is seldom longer.
STATEMENTS, OBJECTS = 25, 20
SENTENCE = 'a brown wooden chair stands next to the large white table near the window'


def expected_requests(writer: QuestionWriter, frames: Sequence[FrameImage]) -> list[ModelRequest]:
    """Return requests as many and as long as writing about frames may take, asking no model.

    The first are the very requests for descriptions. Those that follow depend on the replies, so
    stand-ins of a rich frame take their place: with as many questions as each category may have,
    none of them sifted out before the model checks them.
    """
    description = Description(
        statements=[SENTENCE] * STATEMENTS,
        objects=[SeenObject(name='wooden chair', count=1)] * OBJECTS,
    )
    questions = sum(item.most for item in writer.categories)
    requests = writer.description_requests(frames)
    for frame in frames:
        candidates = [
            Candidate(f'f{frame.index:06d}-{number:03d}', frame.index, '', SENTENCE, SENTENCE, ())
            for number in range(questions)
        ]
        requests.append(writer.writing_request(description))
        requests += [
            writer.check_request(candidates[start : start + CHECK_BATCH], description, frame.image)
            for start in range(0, questions, CHECK_BATCH)
        ]
    return requests
