"""Tasks in processes of their own: faults, hangs and deaths are answers, and cost one process each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))  # a fresh interpreter takes it from here

from isolated_tasks import broken_opening, opening, task
from warpsmith.hardware.isolated import Crowd, each_isolated


def test_what_fails_is_an_answer_and_the_next_task_has_a_fresh_process() -> None:
    seen: list[tuple[int, int]] = []
    tasks = ["a", "b", "fault", "c", "die", "d", "hang", "e", "f"]
    answers = each_isolated(task, tasks, workers=1, patience=3, tell=lambda done, total: seen.append((done, total)))
    failed = {what: answer for what, answer in zip(tasks, answers, strict=True) if isinstance(answer, str)}
    assert failed == {
        "fault": "illegal instruction", "die": "its process died with 9", "hang": "it did not end within 3 s",
    }  # fmt: skip
    done = {answer[0]: answer[1] for answer in answers if not isinstance(answer, str)}
    assert list(done) == ["a", "b", "c", "d", "e", "f"]
    assert done["a"] == done["b"]
    assert done["e"] == done["f"]
    assert len({done["a"], done["c"], done["d"], done["e"]}) == 4
    assert seen == [(k + 1, 9) for k in range(9)]


def test_answers_come_in_the_order_of_the_tasks() -> None:
    tasks = [f"{k}" for k in range(20)]
    answers = each_isolated(task, tasks, workers=2, patience=30)
    assert [a[0] for a in answers] == tasks
    assert each_isolated(task, [], workers=2, patience=30) == []


def test_a_bug_is_raised() -> None:
    with pytest.raises(ZeroDivisionError, match=r"^a bug$"):
        each_isolated(task, ["a", "bug", "b"], workers=1, patience=30)


def test_a_crowd_stays_and_tells_what_comes() -> None:
    told: list[tuple[int, object]] = []
    crowd = Crowd(task, 1, opening)
    try:
        answers = crowd.each(["a", "die", "b"], 20, tell=lambda k, answer: told.append((k, answer)))
        assert told == list(enumerate(answers))
        assert [answers[0][0], answers[1], answers[2][0]] == ["a", "its process died with 9", "b"]
        assert crowd.each(["pid"], 20) == [("opened", answers[2][1])]
        assert crowd.each(["bug", "c"], 20, more=lambda: len(told) < 4, tell=lambda k, answer: told.append((k, answer))) == [
            "ZeroDivisionError: a bug",
            None,
        ]
    finally:
        crowd.end()


def test_a_crowd_that_cannot_start_answers_nothing() -> None:
    crowd = Crowd(task, 1, broken_opening)
    assert crowd.each(["a", "b", "c"], 20) == [None, None, None]
