"""The effects that a condition file may name: entry points in the group ``osmabench.effects``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainValidator, SerializeAsAny, TypeAdapter
from pydantic_core import PydanticKnownError

from osmabench_ros.base.extensions import EFFECTS, load_extension
from osmabench_ros.errors import ConfigError
from osmabench_ros.simulation.effects.effect import Effect


def _effect(data: Any) -> Effect:
    """Return the effect of an entry of `effects:`, whose `kind` says which it is."""
    if isinstance(data, Effect):
        return data
    if not isinstance(data, Mapping):
        raise PydanticKnownError('model_attributes_type')
    if 'kind' not in data:
        raise PydanticKnownError('union_tag_not_found', {'discriminator': "'kind'"})
    kind = str(data['kind'])
    try:
        effect = load_extension(EFFECTS, kind)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    if not (isinstance(effect, type) and issubclass(effect, Effect)):
        raise ValueError(f'the entry point of effect "{kind}" names no subclass of Effect')
    # In a mapping, so that the places of faults begin with the kind.
    return TypeAdapter(dict[str, effect]).validate_python({kind: data})[kind]  # type: ignore[valid-type]


AnyEffect = Annotated[SerializeAsAny[Effect], PlainValidator(_effect)]
"""One entry of `effects:`; its `kind` is the name of the entry point."""
