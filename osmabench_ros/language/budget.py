"""Counts tokens and cost, and enforces the budget."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from osmabench_ros.errors import BudgetExceededError
from osmabench_ros.language.model import ModelRequest, Usage, estimated_prompt_tokens


@dataclass(frozen=True)
class Spending:
    """Use so far: tokens as the server counts them, requests with failed ones."""

    requests: int
    cache_hits: int
    prompt_tokens: int
    output_tokens: int
    cost: float


class Account:
    """Keeps the accounts of one client, limited in tokens and money; safe for threads.

    Prices are per million tokens, in any one currency; 0 if unknown.
    """

    def __init__(
        self,
        input_price: float = 0.0,
        output_price: float = 0.0,
        *,
        max_tokens: int | None = None,
        max_cost: float | None = None,
    ) -> None:
        self._prices = input_price, output_price
        self._max_tokens, self._max_cost = max_tokens, max_cost
        self._lock = threading.Lock()
        self._spent = self._reserved = Usage()
        self._requests = self._cache_hits = 0

    def cost(self, usage: Usage) -> float:
        """Return the price of so many tokens."""
        paid = usage.prompt_tokens * self._prices[0] + usage.output_tokens * self._prices[1]
        return paid / 1e6

    def reserve(self, request: ModelRequest) -> Usage:
        """Set aside what a request may use at most; BudgetExceededError if that is too much."""
        wanted = Usage(estimated_prompt_tokens(request), request.max_output_tokens)
        with self._lock:
            self._check(self._spent + self._reserved + wanted)
            self._reserved += wanted
            self._requests += 1
        return wanted

    def _check(self, total: Usage) -> None:
        for most, used, unit in (
            (self._max_tokens, total.prompt_tokens + total.output_tokens, ' tokens'),
            (self._max_cost, self.cost(total), ''),
        ):
            if most is not None and used > most:
                raise BudgetExceededError(
                    f'the budget of {most}{unit} would be overrun; all replies are kept: '
                    'raise it and run again to go on',
                    reason=f'the budget of {most}{unit} is used up',
                )

    def settle(self, reserved: Usage, used: Usage) -> None:
        """Replace a reservation by the actual use."""
        with self._lock:
            self._reserved -= reserved
            self._spent += used

    def hit(self) -> None:
        """Count a reply that needed no request."""
        with self._lock:
            self._cache_hits += 1

    @property
    def spending(self) -> Spending:
        """Use so far."""
        with self._lock:
            spent = self._spent
            return Spending(
                self._requests,
                self._cache_hits,
                spent.prompt_tokens,
                spent.output_tokens,
                self.cost(spent),
            )
