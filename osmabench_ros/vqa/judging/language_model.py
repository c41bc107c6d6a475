"""Judges free answers by a language model; exact answers by equality."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from osmabench_ros.language.client import ModelClient, raise_if_stopped
from osmabench_ros.language.model import ModelRequest
from osmabench_ros.language.prompts import load_prompt
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.judging.reading import plain
from osmabench_ros.vqa.progress import Progress, silent
from osmabench_ros.vqa.questions import Answer, AnswerType, Question, Verdict
from osmabench_ros.vqa.schemas import JudgedAnswers, parse, schema

BATCH = 20

_Pair = tuple[Question, Answer | None]


class LanguageModelJudge:
    """Equality for yes/no and numbers and for equal strings, a language model for the rest.

    Parameters
    ----------
    client : ModelClient
        Who is asked.
    """

    def __init__(self, client: ModelClient) -> None:
        self.name = client.name
        self._client = client
        self._exact = DeterministicJudge()
        self.prompt = load_prompt('judge_answers')

    def requests(self, pairs: Sequence[_Pair]) -> list[ModelRequest]:
        """Return the requests that `judge` would make."""
        free = [pair for pair in pairs if _is_free(pair)]
        return [self._request(free[i : i + BATCH]) for i in range(0, len(free), BATCH)]

    def judge(self, pairs: Sequence[_Pair], progress: Progress = silent) -> list[Verdict]:
        """Return one verdict for each pair; one that the model left out is a wrong answer.

        Raises
        ------
        BudgetExceededError
            If the budget is used up; replies so far are in the client's cache.
        """
        free = [pair for pair in pairs if _is_free(pair)]
        outcomes = self._client.ask_all(
            self.requests(pairs),
            partial(parse, JudgedAnswers),
            progress=progress,
            what='verdicts',
        )
        raise_if_stopped(outcomes)
        verdicts: dict[str, Verdict] = {}
        for number, outcome in enumerate(outcomes):
            batch = free[number * BATCH : (number + 1) * BATCH]
            given = {v.id: v for v in outcome.value.verdicts} if outcome.value is not None else {}
            for question, _ in batch:
                verdict = given.get(question.id)
                reason = str(outcome.error or 'the judge gave no verdict')
                verdicts[question.id] = Verdict(
                    question.id,
                    verdict is not None and verdict.same,
                    self.name,
                    reason=verdict.reason if verdict is not None else reason,
                    judged=verdict is not None,
                )
        return [verdicts.get(q.id) or self._exactly((q, answer)) for q, answer in pairs]

    def _exactly(self, pair: _Pair) -> Verdict:
        (verdict,) = self._exact.judge([pair])
        return verdict

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
        return ModelRequest(
            self.prompt.render(items=items), self.prompt.system, schema=schema(JudgedAnswers)
        )


def _is_free(pair: _Pair) -> bool:
    """Tell whether no rule of equality decides a pair."""
    question, answer = pair
    if answer is None or answer.value is None or question.answer_type is not AnswerType.TEXT:
        return False
    return plain(question.answer) != plain(answer.value)
