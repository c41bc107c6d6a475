"""Schemas of replies: what every server takes; replies: what any model may send."""

import pytest

from osmabench_ros.vqa.schemas import (
    Checks,
    Description,
    GivenAnswers,
    JudgedAnswers,
    WrittenQuestions,
    parse,
    schema,
)

REPLIES = [Description, WrittenQuestions, Checks, GivenAnswers, JudgedAnswers]
# What Gemini documents for response_json_schema and OpenAI for strict mode, both at once.
SUBSET = {
    'type', 'properties', 'required', 'additionalProperties', 'items', 'enum', 'minimum', 'maximum'
}  # fmt: skip


def objects(part):
    if isinstance(part, dict):
        if part.get('type') == 'object':
            yield part
        for value in part.values():
            yield from objects(value)


def keywords(part, *, names=False):
    for key, value in part.items():
        if not names:
            yield key
        if isinstance(value, dict):
            yield from keywords(value, names=key == 'properties')


@pytest.mark.parametrize('reply', REPLIES)
def test_schemas_keep_to_what_all_servers_take(reply):
    found = schema(reply)
    assert set(keywords(found)) <= SUBSET
    for part in objects(found):
        assert part['additionalProperties'] is False
        assert part['required'] == list(part['properties'])


def test_properties_and_enumerations_are_kept():
    check = schema(Checks)['properties']['checks']['items']
    assert set(check['properties']) == {'id', 'verdict', 'reason'}
    assert 'ambiguous' in check['properties']['verdict']['enum']
    assert schema(Description)['properties']['objects']['items']['properties']['count'] == {
        'type': 'integer', 'minimum': 0, 'maximum': 1000
    }  # fmt: skip


@pytest.mark.parametrize(
    'text',
    [
        '{"answers": [{"id": "q", "answer": "Yes"}]}',
        '```json\n{"answers": [{"id": "q", "answer": "Yes", "nodes": []}]}\n```',
        '<think>Is {"answers": []} meant?</think>\n{"answers": [{"id": "q", "answer": "Yes"}]}',
    ],
)
def test_thoughts_fences_and_missing_optional_parts_do_no_harm(text):
    (answer,) = parse(GivenAnswers, text).answers
    assert (answer.id, answer.answer, answer.nodes) == ('q', 'Yes', [])


def test_texts_that_are_too_long_are_refused_here():
    with pytest.raises(ValueError, match='at most 2000'):
        parse(GivenAnswers, '{"answers": [{"id": "q", "answer": "%s"}]}' % ('a' * 2001))
