"""Judges free answers by a language model; exact answers by equality."""

from collections.abc import Sequence
from functools import partial

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.language.client import ModelClient, raise_if_incomplete
from osmabench_ros.language.model import ModelRequest
from osmabench_ros.language.prompts import load_prompt
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.judging.reading import plain
from osmabench_ros.vqa.questions import Answer, AnswerType, Question, Verdict
from osmabench_ros.vqa.schemas import JudgedAnswers, make_request, parse

BATCH = 20

_Pair = tuple[Question, Answer | None]


class LanguageModelJudge:
    """Equality for yes/no and numbers and for equal strings, a language model for the rest."""

    def __init__(self, client: ModelClient) -> None:
        self.name = client.name
        self._client = client
        self._exact = DeterministicJudge()
        self._prompt = load_prompt('judge_answers')
        self.summary = {'prompt': self._prompt.identity}

    def judge(self, pairs: Sequence[_Pair], progress: Progress = silent) -> list[Verdict]:
        """Return one verdict for each pair; IncompleteError holds all if the server failed."""
        free = [pair for pair in pairs if _is_free(pair)]
        batches = [free[i : i + BATCH] for i in range(0, len(free), BATCH)]
        outcomes = self._client.ask_all(
            [self._request(batch) for batch in batches],
            [partial(_parse_reply, batch) for batch in batches],
            progress=progress,
            what='verdicts',
        )
        verdicts: dict[str, Verdict] = {}
        for batch, outcome in zip(batches, outcomes, strict=True):
            given = {v.id: v for v in outcome.value.verdicts} if outcome.value is not None else {}
            for question, _ in batch:
                verdict = given.get(question.id)
                verdicts[question.id] = Verdict(
                    question.id,
                    verdict is not None and verdict.same,
                    self.name,
                    reason=verdict.reason if verdict is not None else str(outcome.error),
                    judged=verdict is not None,
                    failure=outcome.failure,
                )
        found = [verdicts.get(pair[0].id) or self._exact.judge([pair])[0] for pair in pairs]
        raise_if_incomplete([verdict.failure for verdict in found], 'verdicts', found)
        return found

    def _request(self, batch: Sequence[_Pair]) -> ModelRequest:
        items = [
            {
                'id': question.id,
                'question': question.text,
                'right': str(question.answer),
                'given': str(answer.value) if answer is not None else '',
            }
            for question, answer in batch
        ]
        return make_request(self._prompt, JudgedAnswers, items=items)


def _parse_reply(batch: Sequence[_Pair], text: str) -> JudgedAnswers:
    """Return the verdicts of a reply; ValueError if one of the batch is not among them."""
    found = parse(JudgedAnswers, text)
    missing = {question.id for question, _ in batch} - {item.id for item in found.verdicts}
    if missing:
        raise ValueError(f'{len(missing)} of {len(batch)} verdicts are missing')
    return found


def _is_free(pair: _Pair) -> bool:
    """Return whether no rule of equality decides a pair."""
    question, answer = pair
    if answer is None or answer.value is None or question.answer_type is not AnswerType.TEXT:
        return False
    return plain(question.answer) != plain(answer.value)
