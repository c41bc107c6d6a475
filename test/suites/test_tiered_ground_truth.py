import pytest

from osmabench_ros.errors import MetricError, MissingDependencyError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.suites.openlex3d import DIRECTORY, WordNet, build_tiers, class_words

HEADER = '  1 This is a licence line of the kind the real files begin with.\n'

# word: meanings; each a lexicographer file, lemmas and the names of more general meanings.
SYNSETS = {
    'furniture': (6, ['furniture', 'piece_of_furniture'], []),
    'seat': (6, ['seat'], ['furniture']),
    'sofa': (6, ['sofa', 'couch', 'lounge'], ['seat']),
    'chair': (6, ['chair'], ['seat']),
    'chairman': (18, ['chair', 'chairman'], []),
    'stool': (6, ['stool'], ['seat']),
    'cup': (6, ['cup'], []),
}
SENSES = {'chair': ['chairman', 'chair'], 'couch': ['sofa']}


@pytest.fixture
def wordnet(tmp_path):
    """A database of seven meanings in WordNet's own format."""
    offsets = {}
    data = HEADER
    for name, (kind, lemmas, parents) in SYNSETS.items():
        offsets[name] = len(data)
        words = ' '.join(f'{lemma} 0' for lemma in lemmas)
        pointers = ''.join(f'@ {offsets[parent]:08d} n 0000 ' for parent in parents)
        data += f'{offsets[name]:08d} {kind:02d} n {len(lemmas):02x} {words} '
        data += f'{len(parents):03d} {pointers}| a gloss | with a bar\n'
    index = HEADER
    for word in sorted({*SYNSETS, *SENSES}):
        senses = [offsets[item] for item in SENSES.get(word, [word])]
        listed = ' '.join(f'{item:08d}' for item in senses)
        index += f'{word} n {len(senses)} 1 @ {len(senses)} 0 {listed}  \n'
    (tmp_path / 'data.noun').write_text(data)
    (tmp_path / 'index.noun').write_text(index)
    return WordNet(tmp_path)


def node(node_id, name, low, size):
    box = AxisAlignedBox([low] * 3, [low + size] * 3)
    return SceneNode(node_id, NodeKind.OBJECT, (ScoredLabel(name),), box=box)


def test_a_thing_is_preferred_to_a_person_with_the_same_name(wordnet):
    found = wordnet.thing('chair')
    assert found.lexicographer_file == 6
    assert [wordnet.synset(i).lemmas[0] for i in found.hypernyms] == ['seat']
    assert wordnet.thing('zyx') is None


def test_words_for_a_class(wordnet):
    assert class_words('sofa', wordnet) == ('sofa', 'couch', 'lounge')
    assert class_words('couch', wordnet) == ('couch', 'sofa', 'lounge')
    assert class_words('reading stool', wordnet) == ('reading stool', 'stool')
    assert class_words('zyx', wordnet) == ('zyx',)


def test_tiers_of_a_scene(wordnet):
    nodes = (
        node(1, 'sofa', 0, 2.0),
        node(2, 'chair', 1.5, 1.2),
        node(3, 'stool', 9, 0.5),
        node(4, 'cup', 1.6, 0.1),
        SceneNode(5, NodeKind.ROOM, (ScoredLabel('kitchen'),)),
    )
    found = build_tiers(SceneGraph(nodes), wordnet)
    assert found.machine_made
    assert sorted(found.objects) == [1, 2, 3, 4]
    # A stool is a seat as well, but too small to be taken for a sofa.
    assert found.objects[1].visually_similar == ('chair',)
    assert found.objects[3].visually_similar == ()
    assert found.objects[4].visually_similar == ()
    assert found.objects[1].clutter == (2, 4)
    assert found.objects[3].clutter == ()
    assert found.objects[1].depictions == ()


def test_a_missing_database_names_the_package(tmp_path):
    with pytest.raises(MissingDependencyError, match='apt install wordnet-base'):
        WordNet(tmp_path)


def test_a_damaged_database_is_named(wordnet):
    with pytest.raises(MetricError, match='no synset at byte 3'):
        wordnet.synset(3)


@pytest.mark.skipif(not DIRECTORY.is_dir(), reason='needs the Debian package wordnet-base')
def test_the_real_wordnet():
    real = WordNet()
    assert {'sofa', 'couch'} <= set(class_words('sofa', real))
    assert {'fridge', 'icebox'} & set(class_words('refrigerator', real))
    assert class_words('coffee table', real)[:2] == ('coffee table', 'cocktail table')
