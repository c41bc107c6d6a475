"""Questions, answers and verdicts as typed JSON lines."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from osmabench_ros.base.documents import number_lines, read_unpacked
from osmabench_ros.base.files import write_text
from osmabench_ros.base.strict import first_fault
from osmabench_ros.errors import IncompleteError, QuestionError
from osmabench_ros.language.client import raise_if_incomplete
from osmabench_ros.vqa.questions import Answer, Question, Verdict

QUESTIONS, ANSWERS, VERDICTS = 'questions.jsonl', 'answers.jsonl', 'verdicts.jsonl'

_MAX_LINE_CHARACTERS = 1 << 18

Record = TypeVar('Record', Question, Answer, Verdict)


@cache
def _adapters() -> Mapping[type[Any], TypeAdapter[Any]]:
    return {kind: TypeAdapter(kind) for kind in (Question, Answer, Verdict)}


# Fields that files of simpler questions do not have.
_LEFT_OUT_IF_EMPTY = frozenset(
    ('options', 'unit', 'images', 'context_change', 'transcript', 'score')
)


def to_json_line(record: Question | Answer | Verdict) -> str:
    """Return a record as one line of JSON, keys in the order of the schema, no line end."""
    empty = {key for key in _LEFT_OUT_IF_EMPTY if getattr(record, key, None) in ((), '', None)}
    return _adapters()[type(record)].dump_json(record, exclude=empty).decode()


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write records as JSON lines, all or none; raises QuestionError if an id repeats."""
    items = list(records)
    _check_unique(items, str(path))
    write_text(path, ''.join(f'{to_json_line(item)}\n' for item in items))


def saved(path: Path, work: Callable[[], list[Record]]) -> list[Record]:
    """Return the records that work gives; write them to a path, also if a server failed."""
    try:
        found = work()
    except IncompleteError as error:
        write_records(path, cast('tuple[Record, ...]', error.kept))
        raise
    write_records(path, found)
    return found


def read_complete(path: Path, kind: type[Answer] | type[Verdict], remedy: str = '') -> list[Any]:
    """Read answers or verdicts; raises IncompleteError if a server failed to give some of them."""
    found: list[Any] = read_records(path, kind)
    raise_if_incomplete([item.failure for item in found], f'questions of {path}', (), remedy)
    return found


def read_records(path: Path, kind: type[Record]) -> list[Record]:
    """Read JSON lines of Question, Answer or Verdict; raises QuestionError if one is malformed."""
    lines = number_lines(read_unpacked(path, QuestionError), path)
    records = [_parse_record(line, kind, where) for where, line in lines]
    _check_unique(records, str(path))
    return records


def _parse_record(line: str, kind: type[Record], where: str) -> Record:
    if len(line) > _MAX_LINE_CHARACTERS:  # each of its faults would take a kilobyte
        raise QuestionError(
            f'{where}: the line has {len(line)} characters; '
            f'at most {_MAX_LINE_CHARACTERS} are read'
        )
    try:
        record: Record = _adapters()[kind].validate_json(line)
    except ValidationError as error:
        raise QuestionError(f'{where}: {first_fault(error)}') from error
    return record


def _check_unique(records: Sequence[Question | Answer | Verdict], where: str) -> None:
    seen: set[str] = set()
    for number, record in enumerate(records, start=1):
        key = record.id if isinstance(record, Question) else record.question_id
        if key in seen:
            raise QuestionError(
                f'{where}: question id "{key}" occurs again in record {number}; '
                'ids join the stages, so give each question its own'
            )
        seen.add(key)


def digest(records: Iterable[Question | Answer | Verdict]) -> str:
    """Return the hex SHA-256 of records in order, as they would be written."""
    text = '\n'.join(to_json_line(item) for item in records)
    return hashlib.sha256(text.encode()).hexdigest()
