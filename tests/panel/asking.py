"""A real crash, and what its panel state gives for a question: asked inside the manager, compared outside of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daifu_ipy import Return, Skip, repair_with, run_cell
from daifu_ipy.frontends.panel_state import PanelState


def asked(run: Callable[[], Any], *questions: Callable[[PanelState], Any], ending: Any = None) -> Any:
    """What the questions give for the first crash of `run`, which ends then; one answer, or a list of them."""
    answers: list[Any] = []
    failures: list[BaseException] = []

    def manager(crash):
        if not answers and not failures:
            state = PanelState(crash)
            try:
                answers.extend(question(state) for question in questions)
            except BaseException as failure:  # in a manager it would abort the run, with a note
                failures.append(failure)
            state.let_go()
        return ending or Return("None")

    with repair_with(manager):
        run()
    for failure in failures:
        raise failure
    assert answers, "nothing crashed"
    return answers[0] if len(questions) == 1 else answers


def asked_in_cell(source: str, *questions: Callable[[PanelState], Any], ending: Any = None, **names: Any) -> Any:
    """The same for the text of a notebook cell."""
    namespace = {"__name__": "__main__", **names}
    return asked(lambda: run_cell(source, namespace), *questions, ending=ending or Skip())


def crashed(state: PanelState) -> dict[str, Any]:
    """The detail of the crashed frame."""
    return state.frame(state.overview()["selected"])


def named(page: dict[str, Any]) -> list[str]:
    """The names on a page of variables."""
    return [row["name"] for row in page["variables"]]


def rows(page: dict[str, Any]) -> dict[str, str]:
    """The texts on a page of variables by name."""
    return {row["name"]: row["text"] for row in page["variables"]}


def complaint(question: Callable[[PanelState], Any]) -> Callable[[PanelState], str]:
    """The question, and what is said against it: the text of the `ValueError`."""

    def ask(state: PanelState) -> str:
        try:
            question(state)
        except ValueError as error:
            return str(error)
        raise AssertionError("it was answered")

    return ask
