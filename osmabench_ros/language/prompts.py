"""Prompts kept as files, with a version and a hash that go into reports."""

import hashlib
import json
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from osmabench_ros.base.configuration import config_path
from osmabench_ros.base.documents import parse_mapping
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import ConfigError, errors_as

T = TypeVar('T')


class Prompt(BaseModel, frozen=True, extra='allow', str_strip_whitespace=True):
    """A prompt: the role of the model, and a Jinja2 template of the question."""

    name: str
    version: int
    system: str
    template: str = Field(alias='prompt')
    sha256: str

    def render(self, **values: Any) -> str:
        """Fill the template in, texts as JSON by `data`; ConfigError if a value is missing."""
        import jinja2

        # The output is a prompt, not a page: escaping would change the question.
        environment = jinja2.Environment(
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # noqa: S701
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters['data'] = partial(json.dumps, ensure_ascii=False, default=str)
        with errors_as(ConfigError, f'prompt "{self.name}"', jinja2.TemplateError):
            return environment.from_string(self.template).render(**values)

    def read_setting(self, kind: type[T], key: str) -> T:
        """Return another key of the file in the form of `kind`; ConfigError if it is malformed."""
        return validated(kind, (self.model_extra or {}).get(key), f'prompt "{self.name}", {key}')

    @property
    def identity(self) -> str:
        """Name, version and hash in one string, for provenance."""
        return f'{self.name}/{self.version}/{self.sha256[:12]}'


def load_prompt(name: str) -> Prompt:
    """Return a prompt of `config/prompts/`; ConfigError if the file is missing or lacks a key."""
    path = config_path('prompts', f'{name}.yaml')
    data = path.read_bytes()
    content = parse_mapping(data, path, ConfigError)
    given = {**content, 'name': name, 'sha256': hashlib.sha256(data).hexdigest()}
    remedy = 'a prompt file has version, system and prompt'
    return validated(Prompt, given, str(path), remedy=remedy)
