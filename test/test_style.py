"""The style check names the line and the better phrase, and its limits only fall."""

import style
import yaml


def write(root, text):
    folder = root / 'osmabench_ros' / 'maps'
    folder.mkdir(parents=True)
    (folder / 'example.py').write_text(text)


def test_phrases_and_participles_are_named_with_their_line_and_docstrings_do_not_count(tmp_path):
    write(tmp_path, '"""One."""\n\n\ndef loaded_map():\n    """Load\n    what is the map."""\n')
    values, places = style.measure_style(tmp_path)
    assert (values['phrase "what is"'], values['code lines of maps']) == (1, 1)
    assert places['phrase "what is"'] == [
        'osmabench_ros/maps/example.py:6: "what is": name the noun: "the mask", "the values of"'
    ]
    [place] = places['functions named by a participle']
    assert place == 'osmabench_ros/maps/example.py:4: loaded_map: begin with a verb'


def test_a_value_above_its_limit_fails_and_lower_does_not_raise_it(tmp_path, monkeypatch, capsys):
    write(tmp_path, '"""The thing and the thing."""\n')
    limits = tmp_path / 'limits.yaml'
    limits.write_text('{phrase "thing": 1, code lines of maps: 5}')
    monkeypatch.setattr(style, 'ROOT', tmp_path)
    monkeypatch.setattr(style, 'LIMITS', limits)
    assert style.main([]) == 1
    printed = capsys.readouterr().out
    assert 'phrase "thing": 2, at most 1' in printed
    assert 'osmabench_ros/maps/example.py:1: "thing": object, item' in printed
    assert style.main(['--lower']) == 1
    assert yaml.safe_load(limits.read_text())['phrase "thing"'] == 1
