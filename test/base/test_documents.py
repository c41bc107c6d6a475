"""YAML, JSON and XML are read as their libraries do, and hostile texts end in one clear line."""

import gzip
import json

import pytest
import yaml

from osmabench_ros.base import documents
from osmabench_ros.base.configuration import config_path
from osmabench_ros.base.fence import VARIABLE
from osmabench_ros.errors import ConfigError, LimitError

YAML = {
    'syntax': ('a: [1,\nb: 2', r'line \d+, column \d+: is not YAML: '),
    'key twice': ('a: 1\nb: 2\na: 3\n', 'line 3, column 1: key "a" is there twice'),
    'nested key twice': ('a:\n  b: 1\n  b: 1', 'line 3, column 3: key "b" is there twice'),
    'list as key': ('? [a]\n: 1', 'unhashable key'),
    'month 13': ('a: 2026-13-45', 'a malformed value: month must be'),
    'code': ('a: !!python/object/apply:os.system [ls]', 'constructor for the tag .*python/obj'),
    'alias of itself': ('a: &a [1, *a]', 'alias "a" contains itself'),
    'two documents': ('a: 1\n---\nb: 1', 'line 2, column 1: .*another document'),
    'base 60': ('a: 1' + ':30' * 300 + '.5', 'line 1, column 4: a number has more than 300'),
    'huge integer': ('a: 0x' + 'f' * 6000, 'a number has more than 300'),
    'NUL': ('a: \0', 'holds the character NUL'),
    'Latin-1': (b'a: f\xfcr\n', r'is not UTF-8 text: .* byte 0xfc in position 4'),
}

JSON = {
    'syntax': ('{"a": 1,\n "b" 2}', 'is not JSON: .* at line 2 column 6'),
    'no number': ('{"NaN": 1,\n"a": NaN}', 'is not JSON: .* at line 2 column 6'),
    'deep': ('[' * 1000, 'recursion limit'),
    'NUL': ('["\0"]', 'NUL'),
    'half a character': (r'["\ud800"]', 'hex escape'),
    'Latin-1': (b'["\xfc"]', 'is not UTF-8 text: .* byte 0xfc'),
}


XML = {
    'syntax': (b'<a><b></a>', 'is not valid XML'),
    'entity': (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', 'entities'),
    'entity elsewhere': (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', 'entities'),
}  # fmt: skip


def check_error(parse, name, expected):
    with pytest.raises(ConfigError, match=rf'{name}.*{expected}') as caught:
        parse()
    text = str(caught.value)
    assert '\n' not in text
    assert len(text) < 1000


@pytest.mark.parametrize('name', YAML)
def test_wrong_yaml_is_one_line_with_its_place(name):
    text, expected = YAML[name]
    check_error(lambda: documents.parse_yaml(text, 'a.yaml', ConfigError), r'^a\.yaml', expected)


@pytest.mark.parametrize('name', JSON)
def test_wrong_json_is_one_line_with_its_place(name):
    text, expected = JSON[name]
    check_error(lambda: documents.parse_json(text, 'a.json', ConfigError), r'^a\.json', expected)
    long = 'x' * 5000
    check_error(lambda: documents.parse_json(text, long, ConfigError), r'xxx\.\.\.xxx', '')


@pytest.mark.parametrize('name', XML)
def test_wrong_xml_is_one_line(tmp_path, name):
    text, expected = XML[name]
    (tmp_path / 'a.xml').write_bytes(text)
    check_error(lambda: documents.read_xml(tmp_path / 'a.xml', ConfigError), r'a\.xml', expected)


@pytest.mark.parametrize('read', [documents.read_json, documents.read_yaml, documents.read_xml])
def test_a_file_that_is_too_large_passes_a_limit(tmp_path, monkeypatch, read):
    monkeypatch.setenv(VARIABLE, '0.000004')
    (tmp_path / 'a').write_text('[' + ' ' * 1100 + ']')
    with pytest.raises(LimitError, match=f'has 1102 bytes.*{VARIABLE}'):
        read(tmp_path / 'a', ConfigError)


HONEST = [
    '', '# nothing', 'a', 'null', '- 1\n- 0x1f\n- 0o17\n- 1_000\n- 1:30\n- -7\n- 1.5e3\n- 1:30.5',
    'a: &x {b: [1, 2]}\nc: *x\nd: *x', 'base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}',
    'a: {<<: [{x: 1}, {x: 2, y: 3}], z: 1}', 'on: yes\nno: off\n~: 1', '1: a\n2: b',
    'day: 2026-01-01\nat: 2026-01-01T10:00:00Z', 'a: !!str 12\nb: !!int "7"\nc: ! 5\nd: "8"',
    'a: |\n  two\n  lines\nb: >\n  one\n  line', '%YAML 1.1\n---\na: 1\n...', 'ä: "\\u00fc 😀"',
    'a: !!binary aGVsbG8=', f'a: {2**64 - 1}', "'<<': 1", '!!map {a: 1}',
]  # fmt: skip


@pytest.mark.parametrize('text', HONEST)
def test_honest_yaml_is_read_as_pyyaml_reads_it(text):
    expected = yaml.safe_load(text) if text != "'<<': 1" else {'<<': 1}
    assert repr(documents.parse_yaml(text, 'a', ConfigError)) == repr(expected)
    assert repr(documents.parse_yaml(b'\xef\xbb\xbf' + text.encode(), 'a', ConfigError)) == repr(
        expected
    )


def test_the_configurations_of_the_package_are_read_as_pyyaml_reads_them():
    files = sorted(config_path('demo.yaml').parent.rglob('*.yaml'))
    assert len(files) > 20
    for path in files:
        assert documents.read_yaml(path, ConfigError) == yaml.safe_load(path.read_text('utf-8'))


@pytest.mark.parametrize(
    'text',
    [
        '{"a": [1, -2.5, 1e-400, 1E+30, true, null], "b": {"a": "\\ud83d\\ude00 \\\\ud800 \\n"}}',
        f'[{2**64 - 1}, {1 - 2**64}, 0.{"1" * 400}, "1e999 {"9" * 400}", 12345678901234567890.5]',
        '"[[[[{{{{"', '\n [ ]', '{"a": {"x": 1}, "b": {"x": 1}}',
    ],
)  # fmt: skip
def test_honest_json_is_read_as_python_reads_it(text):
    assert documents.parse_json(text, 'a', ConfigError) == json.loads(text)
    assert documents.parse_json(text.encode(), 'a', ConfigError) == json.loads(text)


def test_lists_may_be_as_deep_as_the_limit():
    text = '[' * 64 + ']' * 64
    assert documents.parse_json(text, 'a', ConfigError) == documents.parse_yaml(
        text, 'a', ConfigError
    )
    with pytest.raises(LimitError, match='nested deeper than 64 levels'):
        documents.parse_yaml(f'[{text}]', 'a', ConfigError)


def test_xml_is_read(tmp_path):
    path = tmp_path / 'a.xml'
    path.write_text('<?xml version="1.0"?><a><b c="1">x &amp; y</b></a>')
    root = documents.read_xml(path, ConfigError)
    assert (root.tag, root[0].attrib, root[0].text) == ('a', {'c': '1'}, 'x & y')


@pytest.mark.parametrize('pack', [bytes, gzip.compress])
def test_a_text_comes_out_packed_or_not(tmp_path, pack, monkeypatch):
    path = tmp_path / 'a.jsonl'
    path.write_bytes(pack(b'{"a": 1}\n'))
    assert documents.read_unpacked(path, ConfigError) == '{"a": 1}\n'
    path.write_bytes(pack(b'\xff'))
    with pytest.raises(ConfigError, match=r'a\.jsonl is not UTF-8 text'):
        documents.read_unpacked(path, ConfigError)
    path.write_bytes(pack(bytes(10 << 20)))
    monkeypatch.setenv(VARIABLE, '0.01')
    with pytest.raises(LimitError, match=rf'a\.jsonl .* bytes.*{VARIABLE}'):
        documents.read_unpacked(path, ConfigError)


@pytest.mark.parametrize('cut', [5, 20, -4, None])
def test_a_damaged_gzip_is_named(tmp_path, cut):
    data = bytearray(gzip.compress(bytes(range(256)) * 10)[:cut])
    if cut is None:
        data[12] ^= 255
    (tmp_path / 'a.gz').write_bytes(data)
    with pytest.raises(ConfigError, match=r'a\.gz'):
        documents.read_unpacked(tmp_path / 'a.gz', ConfigError)


@pytest.mark.parametrize('escape', [r'\u001b', r'\u0007', r'\\\\\u009B'])
def test_a_control_character_of_a_json_file_is_refused(tmp_path, escape):
    path = tmp_path / 'a.json'
    path.write_text(f'{{"name": "a{escape}[31m"}}')
    with pytest.raises(ConfigError, match=r'a\.json holds the control character \\u00'):
        documents.read_json(path, ConfigError)
    path.write_text(r'{"name": "tab\u0009, line\u000a and \\u001b as text"}')
    assert documents.read_json(path, ConfigError)['name'].endswith(r'\u001b as text')
