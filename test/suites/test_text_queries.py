import pytest

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.tiers import TieredObject, collect_tiers
from osmabench_ros.suites.queried_map import TextQuery, queries_of, read_prompts, read_queries

LABELS = collect_tiers(
    [
        TieredObject(1, ('couch', 'sofa')),
        TieredObject(2, ('sofa', 'cushion'), ('flower', 'sun')),
        TieredObject(3, ('wall', 'door frame', 'partition')),
    ]
)
SYNONYMS = [
    TextQuery('couch', (1,)),
    TextQuery('sofa', (1, 2)),
    TextQuery('cushion', (2,)),
    TextQuery('partition', (3,)),
]
DEPICTIONS = [
    TextQuery(f'{depiction} {synonym}', (2,))
    for depiction in ('flower', 'sun')
    for synonym in ('sofa', 'cushion')
]


def test_levels_are_those_of_the_published_mapping():
    assert queries_of(LABELS, 'l0') == SYNONYMS
    assert queries_of(LABELS, 'l1') == DEPICTIONS
    assert queries_of(LABELS, 'all') == SYNONYMS + DEPICTIONS


def test_a_text_of_two_levels_is_two_queries():
    labels = collect_tiers([TieredObject(1, ('a b',)), TieredObject(2, ('b',), ('a',))])
    assert queries_of(labels, 'all') == [
        TextQuery('a b', (1,)),
        TextQuery('b', (2,)),
        TextQuery('a b', (2,)),
    ]


def test_a_mapping_file_is_read_level_by_level(write_file):
    path = write_file('mapping.json', '{"level0": {"sofa": [1, 2]}, "level1": {"sun sofa": [2]}}')
    assert read_queries(path) == [TextQuery('sofa', (1, 2)), TextQuery('sun sofa', (2,))]


@pytest.mark.parametrize(
    ('text', 'fault'),
    [
        ('[]', '.*it maps levels to queries'),
        ('{"level0": 3}', r'level0: .*it maps levels to queries'),
        ('{"level0": {"sofa": ["1"]}}', r'level0\.sofa\.0: .* integer .*object ids'),
        ('{"level0": {"sofa": [true]}}', r'level0\.sofa\.0: .* integer .*object ids'),
        ('{"level0": {}}', 'holds no queries'),
    ],
)
def test_a_malformed_mapping_is_named(text, fault, write_file):
    path = write_file('mapping.json', text)
    with pytest.raises(MetricError, match=f'mapping.json: {fault}'):
        read_queries(path)


def test_a_prompt_list_keeps_its_order(tmp_path, write_file):
    path = write_file('prompt_list.txt', 'sofa \n coffee table\nbed')
    assert read_prompts(path) == ['sofa', 'coffee table', 'bed']
    path.write_text('')
    with pytest.raises(MetricError, match=r'prompt_list.txt: holds no prompts'):
        read_prompts(path)
    with pytest.raises(MetricError, match='does not exist'):
        read_prompts(tmp_path / 'none.txt')
