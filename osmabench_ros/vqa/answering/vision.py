"""Answers by a vision-language model: from frames of the run, or from views of the map."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import QuestionError
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.vqa.answering.answerer import AnsweringMaterial
from osmabench_ros.vqa.answering.language_model import PromptedAnswerer, Shown
from osmabench_ros.vqa.answering.pictures import (
    encoded,
    four_views,
    kept_frames,
    photo,
    top_view_of,
)

_PROMPT = 'answer_from_pictures'


class ImagesAnswerer(PromptedAnswerer):
    """Sees the images of each question, and no map."""

    def __init__(self, *, material: AnsweringMaterial, options: dict[str, Any]) -> None:
        super().__init__(material, 'images', _PROMPT)
        validated(Strict, options, 'answerer "images"')

    def shown(self, semantic_map: SemanticMap) -> Shown:
        """Return nothing: each question brings its images."""
        del semantic_map
        return Shown({'pictures': []})


class FramesOptions(Strict):
    """Options of the answerer `frames`: how many images along the path it sees."""

    count: int = Field(8, ge=1, le=64)


class FramesAnswerer(PromptedAnswerer):
    """Sees frames that the run kept, evenly chosen along the path, and no map."""

    def __init__(self, *, material: AnsweringMaterial, options: dict[str, Any]) -> None:
        super().__init__(material, 'frames', _PROMPT)
        self._count = validated(FramesOptions, options, 'answerer "frames"').count
        self._folder = material.frames

    def shown(self, semantic_map: SemanticMap) -> Shown:
        """Return the frames; raises QuestionError if the run kept none."""
        del semantic_map
        frames = kept_frames(self._folder) if self._folder is not None else {}
        if not frames:
            raise QuestionError(
                f'there are no frames for the answerer "frames" in {self._folder}; runs keep some '
                'of those that they render or play, else copy images named by number there'
            )
        indices = list(frames)
        places = np.linspace(0, len(indices) - 1, min(self._count, len(indices)))
        chosen = [indices[round(place)] for place in places.tolist()]
        lines = [f'frame {index} of the path of a camera' for index in chosen]
        return Shown({'pictures': lines}, tuple(photo(frames[index]) for index in chosen))


class FourViewsAnswerer(PromptedAnswerer):
    """Sees the points of the map from above its four sides."""

    def __init__(self, *, material: AnsweringMaterial, options: dict[str, Any]) -> None:
        super().__init__(material, 'four_views', _PROMPT)
        validated(Strict, options, 'answerer "four_views"')

    def shown(self, semantic_map: SemanticMap) -> Shown:
        """Return the views; raises QuestionError if the map has no points."""
        views = four_views(semantic_map)
        if not views:
            raise QuestionError('the map has no points to draw for the answerer "four_views"')
        lines = [
            f'the whole place from above, seen along {axis}' for axis in ('+x', '-x', '+y', '-y')
        ]
        return Shown({'pictures': lines}, tuple(encoded(view) for view in views))


class TopViewOptions(Strict):
    """Options of the answerer `top_view`: whether names stand at the centres of boxes."""

    labels: bool = True


class TopViewAnswerer(PromptedAnswerer):
    """Sees the map from straight above, as in Hypo3D."""

    def __init__(self, *, material: AnsweringMaterial, options: dict[str, Any]) -> None:
        super().__init__(material, 'top_view', _PROMPT)
        self._labels = validated(TopViewOptions, options, 'answerer "top_view"').labels

    @property
    def summary(self) -> dict[str, Any]:
        """Summary for the report: the prompt, and whether names were shown."""
        return {**super().summary, 'labels': self._labels}

    def shown(self, semantic_map: SemanticMap) -> Shown:
        """Return the view; raises QuestionError if the map has neither points nor boxes."""
        try:
            view, axes = top_view_of(semantic_map, labels=self._labels)
        except ValueError as error:
            raise QuestionError(f'{error} for the answerer "top_view"') from error
        return Shown({'pictures': [f'the whole place from above; {axes}']}, (encoded(view),))
