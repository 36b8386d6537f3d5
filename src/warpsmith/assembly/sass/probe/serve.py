"""Run many learners together: their requests are joined into one call of the disassembler a round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from warpsmith.assembly.sass.probe.oracle import Oracle
    from warpsmith.assembly.sass.probe.requests import Asking, Request

__all__ = ["serve"]

T = TypeVar("T")


def serve(oracle: Oracle, learners: Mapping[Any, Asking[T]], tell: Callable[[int], None] = lambda words: None) -> dict[Any, T]:
    """Run the learners to their ends and return their results; `tell` is called with the words asked in each round."""
    results: dict[Any, T] = {}
    waiting: dict[Any, tuple[Asking[T], Request]] = {}

    def step(key: Any, learner: Asking[T], answer: list[Any] | None) -> None:
        try:
            request = next(learner) if answer is None else learner.send(answer)
        except StopIteration as end:
            results[key] = end.value
        else:
            waiting[key] = (learner, request)

    for key, learner in learners.items():
        step(key, learner, None)
    while waiting:
        round_, waiting = waiting, {}
        answers = {kind: _answers(oracle, kind, round_) for kind in ("texts", "classes")}
        tell(sum(len(words) for _, (_, words) in round_.values()))
        for key, (learner, (kind, words)) in round_.items():
            step(key, learner, [next(answers[kind]) for _ in words])
    return results


def _answers(oracle: Oracle, kind: str, round_: Mapping[Any, tuple[Any, Request]]) -> Any:
    words = [w for _, (asked, ws) in round_.values() if asked == kind for w in ws]
    return iter((oracle.texts if kind == "texts" else oracle.classes)(words) if words else [])
