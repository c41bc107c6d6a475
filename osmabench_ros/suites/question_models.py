"""Language models that answer or judge questions within a run."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from osmabench_ros.language.budget import Prices
from osmabench_ros.language.client import ModelClient
from osmabench_ros.language.settings import DEFAULTS, ModelSettings
from osmabench_ros.suites.options import SuiteOptions
from osmabench_ros.vqa.answering.language_model import DEFAULT_GRAPH_TOKENS

RULE, DETERMINISTIC = 'rule', 'deterministic'


class QuestionModelOptions(SuiteOptions):
    """Who answers and who judges; the default needs no network.

    Parameters
    ----------
    answerer : str
        'rule', or a model such as 'openai:qwen3' or 'gemini:gemini-2.5-flash'.
    judge : str
        'deterministic', or a model.
    base_url : str
        Address of a server of your own.
    cache : Path, optional
        Folder of kept replies; the user's own cache if None.
    concurrency : int
        Requests under way at a time.
    graph_tokens : int
        Budget of a prompt for the graph; what does not fit is counted.
    max_tokens, max_cost : optional
        Budget of one map. When it is used up the evaluation stops; what was answered is kept.
    input_price, output_price : float
        Of a million tokens.
    timeout_s, max_reply_mib : float
        Bounds of one reply, as in `ServerOptions`.
    """

    answerer: str = RULE
    judge: str = DETERMINISTIC
    base_url: str = ''
    cache: Path | None = None
    concurrency: int = Field(4, ge=1)
    graph_tokens: int = Field(DEFAULT_GRAPH_TOKENS, ge=100)
    max_tokens: int | None = Field(None, ge=1)
    max_cost: float | None = Field(None, gt=0)
    input_price: float = Field(0.0, ge=0)
    output_price: float = Field(0.0, ge=0)
    timeout_s: float = DEFAULTS.timeout_s
    max_reply_mib: float = DEFAULTS.max_reply_mib

    def check(self) -> None:
        """Make the models once, so that a wrong name or a missing key is found early."""
        self.answering_client()
        self.judging_client()

    @property
    def language_models(self) -> tuple[str, ...]:
        """The models that are asked, each once."""
        named = (self.answerer, self.judge)
        return tuple(dict.fromkeys(item for item in named if item not in (RULE, DETERMINISTIC)))

    def answering_client(self) -> ModelClient | None:
        """Return who answers, None if it is the rules; with accounts of its own."""
        return None if self.answerer == RULE else self._client(self.answerer)

    def judging_client(self) -> ModelClient | None:
        """Return who judges, None if it is the rules; with accounts of its own."""
        return None if self.judge == DETERMINISTIC else self._client(self.judge)

    def _client(self, model: str) -> ModelClient:
        return ModelSettings(
            model,
            self.base_url,
            self.cache,
            self.concurrency,
            self.max_tokens,
            self.max_cost,
            Prices(self.input_price, self.output_price),
            self.timeout_s,
            self.max_reply_mib,
        ).client()
