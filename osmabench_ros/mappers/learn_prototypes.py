"""Learns the prototypes that come with the package on apartments that no run uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.prototype_learning import Lesson, learn_prototypes, take_lesson
from osmabench_ros.mappers.prototypes import Prototypes
from osmabench_ros.mappers.rehearsal import ApartmentSequence, Rehearsal
from osmabench_ros.mappers.survey import SurveyOptions

FIRST_SEED = 1000
"""Seeds from here on are for learning; runs use lower ones."""

CONDITION = 'baseline'


def learn_from_apartments(
    seeds: Sequence[int],
    *,
    per_class: int = 8,
    rehearsal: Rehearsal | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Prototypes:
    """Learn prototypes, `per_class` or fewer, from procedural apartments under baseline light.

    The rehearsal is the demo's by default; `progress` is called with a text and the fraction done.
    Raises ConfigError if there are no seeds, or one is below FIRST_SEED: those are for runs.
    """
    if not seeds or min(seeds) < FIRST_SEED:
        raise ConfigError(
            f'prototypes are learnt on apartments with seeds from {FIRST_SEED} on, lower ones are '
            f'for runs; got {list(seeds) or "none"}'
        )
    setting = rehearsal or Rehearsal()
    provenance = {
        'scene': 'apartment',
        'condition': CONDITION,
        'seeds': list(seeds),
        'frames_per_seed': setting.max_frames,
    }
    lessons = _lessons(seeds, setting, progress or (lambda _text, _fraction: None))
    return learn_prototypes(lessons, per_class=per_class, seed=0, provenance=provenance)


def _lessons(
    seeds: Sequence[int], rehearsal: Rehearsal, progress: Callable[[str, float], None]
) -> Iterator[Lesson]:
    for done, seed in enumerate(seeds):
        progress(f'apartment {seed}', done / len(seeds))
        sequence = ApartmentSequence(seed, rehearsal)
        label_set = sequence.scene.label_set
        yield take_lesson(sequence.frames(CONDITION), label_set, SurveyOptions())
    progress('clustering', 1.0)
