"""How many questions of each category to ask for in a frame, and what each is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from osmabench_ros.errors import ConfigError
from osmabench_ros.language.prompts import Prompt
from osmabench_ros.vqa.questions import Category


@dataclass(frozen=True)
class CategoryRequest:
    """What to ask for in one category, and how many questions a frame."""

    __pydantic_config__ = ConfigDict(extra='forbid')

    name: Category
    least: Annotated[int, Field(ge=0)]
    most: Annotated[int, Field(ge=1)]
    meaning: str


_REQUESTS = TypeAdapter(tuple[CategoryRequest, ...])


def category_requests(prompt: Prompt) -> tuple[CategoryRequest, ...]:
    """Return the categories that a prompt file lists; raises ConfigError if one is malformed."""
    try:
        return _REQUESTS.validate_python(prompt.settings.get('categories', ()))
    except ValidationError as error:
        fault = error.errors()[0]
        key = '.'.join(str(part) for part in fault['loc'])
        raise ConfigError(f'prompt "{prompt.name}", categories.{key}: {fault["msg"]}') from None
