"""Hypo3D's exact and partial match, on the cases that its own code was run on."""

import csv
import io
import json

import numpy as np
import pytest
from support.commands import output_of
from support.published_rows import change

from osmabench_ros.errors import QuestionError
from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.suites.hypo3d import published
from osmabench_ros.suites.hypo3d.published import (
    PUBLISHED,
    normalised,
    partial_match,
    strictly_normalised,
    word_f1,
)


@pytest.mark.parametrize(
    ('text', 'compat', 'strict'),
    [
        ('Northwest', 'front left', 'front left'),
        ('north-west', 'frontleft', 'front left'),
        ('behind and to the left', 'back left', 'back left'),
        ('To the left of the bed', 'left bed', 'left bed'),
        ('bottom left corner', 'back left', 'back left'),
        ('near the table', 'table', 'table'),
        ('There are two chairs', 'there are 2', 'there are 2 chairs'),
        ('twenty one', '20 1', '21'),
        ('1.5 meters', '15', '1.5 meters'),
        ('point', '0', 'point'),
        ('no one', 'no 1', 'no one'),
        ('left-hand side', 'lefthand side', 'left'),
        ('the top of the shelf', 'front of shelf', 'top of shelf'),
        ('the bottom of the shelf', 'back shelf', 'bottom of shelf'),
        ('near', '', 'near'),
        ('in front and to the left', 'in front and left', 'front left'),
        ('two hundred and five', '2 100 5', '205'),
        ('a thousand', '1000', '1000'),
        ('one point five metres', '1 0 5', '1.5 metres'),
        ('top right corner', 'front right', 'front right'),
        ('007', '7', '7'),
        ('', '', ''),
    ],
)
def test_answers_are_normalised_as_published_and_strictly(text, compat, strict):
    assert normalised(text) == compat
    assert strictly_normalised(text) == strict


@pytest.mark.parametrize(
    ('predicted', 'reference', 'em', 'pm'),
    [
        ('near', 'near', 1, 0),
        ('the chair and the table', 'chair', 0, 1),
        ('front', 'front left', 0, 0.5),
        ('Northwest', 'front left', 1, 1),
    ],
)
def test_matches_of_pairs_that_the_published_code_was_run_on(predicted, reference, em, pm):
    pair = normalised(predicted), normalised(reference)
    assert (pair[0] == pair[1], partial_match(*pair)) == (em, pm)


@pytest.fixture
def file(write_file):
    data = {
        'scene0000_00': [
            change(
                'Movement Change',
                ('Direction', 'front left', 'north-west'),
                ('Scale Direction', 'left', 'to the left'),
            ),
            change('Removal Change', ('Semantic', 'wooden table', 'table')),
        ],
        'scene0001_00': [change('Movement Change', ('Scale', '3', 'two'))],
    }
    return write_file('answers.json', data)


def by_group(path, mode):
    return {
        (row['change_type'], row['question_type']): (row['answers'], row['em'], row['pm'])
        for row in PUBLISHED.score_files([path])
        if row['mode'] == mode
    }


def test_figures_are_means_over_answers_by_change_and_question(file):
    assert by_group(file, 'compat') == {
        ('', ''): (4, 0.25, 0.375),
        ('', 'Scale'): (2, 0.5, 0.5),
        ('', 'Direction'): (2, 0.5, 0.5),
        ('', 'Semantic'): (1, 0.0, 0.5),
        ('movement', ''): (3, pytest.approx(1 / 3), pytest.approx(1 / 3)),
        ('movement', 'Scale'): (2, 0.5, 0.5),
        ('movement', 'Direction'): (2, 0.5, 0.5),
        ('removal', ''): (1, 0.0, 0.5),
        ('removal', 'Semantic'): (1, 0.0, 0.5),
    }
    # Strictly, north-west is a direction too.
    assert by_group(file, 'strict')['', 'Direction'] == (2, 1.0, 1.0)


def test_similarity_is_the_mean_cosine_of_normalised_answers(file, monkeypatch):
    class Spelling:
        is_available = staticmethod(lambda: True)

        def embed(self, texts):
            counts = np.array([[1e-9 + text.count(c) for c in 'abeflnorstw123'] for text in texts])
            return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)

    monkeypatch.setattr(published, 'SentenceEmbedder', Spelling)
    row = PUBLISHED.score_files([file])[0]
    pairs = [('frontleft', 'front left'), ('left', 'left'), ('table', 'wooden table'), ('2', '3')]
    cosines = [float(np.prod(Spelling().embed(pair), axis=0).sum()) for pair in pairs]
    assert row['similarity'] == pytest.approx(np.mean(cosines), abs=1e-6)


def test_the_command_prints_all_groups_of_both_modes(file):
    rows = list(csv.DictReader(io.StringIO(output_of('score', 'hypo3d', file))))
    assert {row['mode'] for row in rows} == {'compat', 'strict'}
    assert (rows[0]['change_type'], rows[0]['em'], rows[0]['pm']) == ('', '0.25', '0.375')
    assert bool(rows[0]['similarity']) is SentenceEmbedder.is_available()
    assert len(json.loads(output_of('score', 'hypo3d', file, '--format', 'json'))) == len(rows)


def test_a_file_without_predictions_is_refused_with_its_place(tmp_path, file):
    data = json.loads(file.read_text())
    del data['scene0001_00'][0]['questions_answers'][0]['predicted_answer']
    file.write_text(json.dumps(data))
    with pytest.raises(QuestionError, match=r'answers\.json.*scene0001_00\.0.*predicted_answer'):
        PUBLISHED.score_files([file])
    file.write_text('{}')
    with pytest.raises(QuestionError, match='no answer to score'):
        PUBLISHED.score_files([file])


def test_naming_more_raises_the_partial_match_of_compat_and_not_of_strict():
    assert partial_match('front back left right', 'left') == 1.0
    assert word_f1('front back left right', 'left') == pytest.approx(0.4)
    assert (word_f1('left', 'left'), word_f1('', 'left'), word_f1('left', '')) == (1.0, 0.0, 0.0)
