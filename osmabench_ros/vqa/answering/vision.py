"""Contexts of pictures: images of questions, frames of the run, views of the map."""

from functools import partial

from pydantic import Field

from osmabench_ros.base.images import select_evenly
from osmabench_ros.errors import QuestionError
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.vqa.answering import pictures
from osmabench_ros.vqa.answering.answerer import AnsweringMaterial
from osmabench_ros.vqa.answering.language_model import Context, LanguageModelAnswerer, Shown


class Images(Context):
    """Shows the images of each question, and nothing of the map."""

    name = 'images'
    prompt = 'answer_from_pictures'

    def shown(self, _semantic_map: SemanticMap, _material: AnsweringMaterial) -> Shown:
        """Return no more pictures."""
        return Shown({'pictures': []})


class Frames(Images):
    """Shows `count` frames that the run kept, evenly chosen along the path, and no map."""

    name = 'frames'
    count: int = Field(8, ge=1, le=64)

    def shown(self, _semantic_map: SemanticMap, material: AnsweringMaterial) -> Shown:
        """Return the frames; raises QuestionError if the run kept none."""
        frames = pictures.list_kept_frames(material.frames) if material.frames is not None else {}
        if not frames:
            raise QuestionError(
                f'there are no frames for the answerer "frames" in {material.frames}; runs keep '
                'some of those that they render or play, else copy images named by number there'
            )
        chosen = select_evenly(list(frames), self.count)
        lines = [f'frame {index} of the path of a camera' for index in chosen]
        return Shown({'pictures': lines}, tuple(pictures.photo(frames[index]) for index in chosen))


class FourViews(Images):
    """Shows the points of the map from above its four sides."""

    name = 'four_views'

    def shown(self, semantic_map: SemanticMap, _material: AnsweringMaterial) -> Shown:
        """Return the views; raises QuestionError if the map has no points."""
        views = pictures.four_views(semantic_map)
        if not views:
            raise QuestionError('the map has no points to draw for the answerer "four_views"')
        lines = [
            f'the whole place from above, seen along {axis}' for axis in ('+x', '-x', '+y', '-y')
        ]
        return Shown({'pictures': lines}, tuple(pictures.encoded(view) for view in views))


class TopView(Images):
    """Shows the map from straight above, as in Hypo3D, with `labels` at the centres of boxes."""

    name = 'top_view'
    labels: bool = True

    def shown(self, semantic_map: SemanticMap, _material: AnsweringMaterial) -> Shown:
        """Return the view; raises QuestionError if the map has neither points nor boxes."""
        try:
            view, axes = pictures.top_view_of(semantic_map, labels=self.labels)
        except ValueError as error:
            raise QuestionError(f'{error} for the answerer "top_view"') from error
        return Shown(
            {'pictures': [f'the whole place from above; {axes}']}, (pictures.encoded(view),)
        )


ImagesAnswerer = partial(LanguageModelAnswerer, Images)
FramesAnswerer = partial(LanguageModelAnswerer, Frames)
FourViewsAnswerer = partial(LanguageModelAnswerer, FourViews)
TopViewAnswerer = partial(LanguageModelAnswerer, TopView)
