"""How many questions of each category to ask for in a frame, and what each is about."""

from __future__ import annotations

from dataclasses import dataclass

from osmabench_ros.vqa.questions import Category


@dataclass(frozen=True)
class CategoryRequest:
    """What to ask for in one category; numbers are those of OSMa-Bench.

    Parameters
    ----------
    category : Category
        The category.
    least, most : int
        Questions a frame.
    meaning : str
        What it is about, for the prompt.
    """

    category: Category
    least: int
    most: int
    meaning: str

    @property
    def name(self) -> str:
        """Name as the prompt and the reply spell it."""
        return self.category.value


CATEGORY_REQUESTS = (
    CategoryRequest(
        Category.EXISTENCE_POSITIVE, 3, 5, 'asks whether something that is there is there'
    ),
    CategoryRequest(
        Category.EXISTENCE_NEGATIVE, 2, 4, 'asks for a plausible thing that is not there'
    ),
    CategoryRequest(
        Category.BINARY_LOGICAL, 3, 5, 'joins two existence questions with AND, OR or NOT'
    ),
    CategoryRequest(
        Category.OBJECT_ATTRIBUTES, 3, 5, 'asks for a colour, material, shape or state'
    ),
    CategoryRequest(
        Category.RELATIONS_SPATIAL, 3, 5, 'asks what is on, in, under, above, next to something'
    ),
    CategoryRequest(
        Category.RELATIONS_FUNCTIONAL, 1, 3, 'asks what supports, holds or contains something'
    ),
    CategoryRequest(Category.MEASUREMENT, 1, 3, 'asks for a number of things'),
    CategoryRequest(
        Category.COMPARISON, 3, 5, 'asks which of two named things is larger, higher, darker'
    ),
    CategoryRequest(
        Category.TASK_REACHABILITY, 2, 4, 'asks whether a robot finds the space to reach something'
    ),
    CategoryRequest(
        Category.OBJECT_AFFORDANCE, 3, 5, 'asks what can be done with a thing, or what allows it'
    ),
    CategoryRequest(
        Category.MANIPULATION_PRECONDITION, 1, 3,
        'asks what has to be done before something can be grasped, opened or moved',
    ),
)  # fmt: skip
