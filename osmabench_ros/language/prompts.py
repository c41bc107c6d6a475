"""Prompts kept as files, with a version and a hash that go into reports."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from osmabench_ros.base.configuration import config_path
from osmabench_ros.base.documents import parse_yaml
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import ConfigError, errors_as

T = TypeVar('T')
_KEYS = ('version', 'system', 'prompt')


@dataclass(frozen=True)
class Prompt:
    """A prompt: the role of the model, and a Jinja2 template of the question."""

    name: str
    version: int
    system: str
    template: str
    sha256: str
    settings: Mapping[str, Any] = field(default_factory=dict)

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
        return validated(kind, self.settings.get(key), f'prompt "{self.name}", {key}')

    @property
    def identity(self) -> str:
        """Name, version and hash in one string, for provenance."""
        return f'{self.name}/{self.version}/{self.sha256[:12]}'


def load_prompt(name: str) -> Prompt:
    """Return a prompt of `config/prompts/`; ConfigError if the file is missing or lacks a key."""
    path: Path = config_path('prompts', f'{name}.yaml')
    data = path.read_bytes()
    remedy = 'a prompt file has version, system and prompt'
    with errors_as(ConfigError, str(path), LookupError, TypeError, ValueError, remedy=remedy):
        content = parse_yaml(data, path, ConfigError)
        return Prompt(
            name,
            int(content['version']),
            str(content['system']).strip(),
            str(content['prompt']).strip(),
            hashlib.sha256(data).hexdigest(),
            {key: value for key, value in content.items() if key not in _KEYS},
        )
