"""The prompt: what a typed line does, and that nothing but a command decides."""

from __future__ import annotations

import threading
import types

import pytest

from daifu_ipy.engine.repairs import Abort, Break, Continue, Pass, Return, Skip, Surgery
from daifu_ipy.frontends.prompt import ABORT_QUESTION, MORE, PROMPT, Prompt
from tests.fakes import FakeCrash

EOF, CTRL_C = EOFError, KeyboardInterrupt


class Terminal:
    """Types the given lines (an exception class is raised) and keeps what it sees."""

    def __init__(self, *lines):
        self.lines, self.asked, self.shown = list(lines), [], []

    def ask(self, prompt):
        self.asked.append(prompt)
        line = self.lines.pop(0)
        if isinstance(line, type):
            raise line
        return line

    @property
    def text(self):
        return "\n".join(self.shown)


def play(*lines, crash=None, **parts):
    """The ending that these lines lead to, the crash, and the terminal; all lines must be used up."""
    crash, terminal = crash or FakeCrash(**parts), Terminal(*lines)
    repair = Prompt(terminal.ask, terminal.shown.append)(crash)
    assert terminal.lines == []
    assert (repair.actions, repair.frame) == ((), 0)
    return repair.then, crash, terminal


@pytest.mark.parametrize(
    ("lines", "ending"),
    [
        (["pass"], Pass()),
        (["  pass  "], Pass()),
        (["skip"], Skip()),
        (["continue"], Continue()),
        (["break"], Break()),
        (["abort"], Abort()),
        (["return"], Return("None")),
        (["return total / n"], Return("total / n")),
        (["", "  ", "skip"], Skip()),
        (["quit", "n", "skip"], Skip()),
        (["exit", "y"], Abort()),
        ([EOF, EOF], Abort()),
        ([EOF, "y"], Abort()),
        ([EOF, "n", "pass"], Pass()),
        ([EOF, "", "pass"], Pass()),
        ([EOF, CTRL_C, "pass"], Pass()),
        ([CTRL_C, "no", CTRL_C, "n", "pass"], Pass()),
        ([CTRL_C, "yes"], Abort()),
        ([CTRL_C, EOF], Abort()),
        ([CTRL_C, CTRL_C, CTRL_C, CTRL_C, "pass"], Pass()),
        (["action", EOF, EOF, EOF], Abort()),
        (["if x:", EOF, EOF, EOF], Abort()),
        ([RuntimeError], Abort()),
    ],
    ids=repr,
)
def test_what_decides(lines, ending):
    assert play(*lines)[0] == ending


@pytest.mark.parametrize(
    "lines", [[RuntimeError], [EOF, RuntimeError], ["action", RuntimeError], ["if x:", RuntimeError]]
)
def test_stdin_that_does_not_work_aborts(lines):
    then, _, terminal = play(*lines)
    assert then == Abort()
    assert "daifu: can't ask here (RuntimeError: ): aborting" in terminal.text


@pytest.mark.parametrize(
    ("lines", "variables"),
    [
        (["x = 1"], {"x": 1}),
        (["x = 1; y = 2"], {"x": 1, "y": 2}),
        (["action x = 1"], {"x": 1}),
        (["action", "x = 1", "y = x + 1", ""], {"x": 1, "y": 2}),
        (["action", "for i in range(3):", "    x = i", ""], {"i": 2, "x": 2}),
        (["action", EOF], {}),
        (["action", "x = 1", CTRL_C], {}),
        (["action for i in (1, 2):", "  x = i", ""], {"i": 2, "x": 2}),
        (["for i in (1, 2):", "  x = i", ""], {"i": 2, "x": 2}),
        (["for i in (1, 2):", CTRL_C], {}),
        (["for i in (1, 2): x = i", ""], {"i": 2, "x": 2}),
        (["x = [1,", "2]"], {"x": [1, 2]}),
        (["x = '''a", "b'''"], {"x": "a\nb"}),
        (["skip = 3"], {"skip": 3}),
        (["action = 3"], {"action": 3}),
        (["stack, vars = 1, 2"], {"stack": 1, "vars": 2}),
        (["abort = [1]"], {"abort": [1]}),
        (["x = 1", "x += 1", "1 / 0", "x += 1"], {"x": 3}),
        (["del gone"], {}),
    ],
    ids=repr,
)
def test_python_changes_the_crashed_variables(lines, variables):
    crash = FakeCrash(variables={"gone": 1})
    play(*lines, "pass", crash=crash)
    expected = variables if lines == ["del gone"] else {"gone": 1, **variables}
    assert crash.namespace == expected


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("1 + 1", "2"),
        ("x = 5", ""),
        ("1 / 0", "ZeroDivisionError: division by zero\n  line 1: 1 / 0"),
        ("action return 5", "SyntaxError: an action can't use 'return'"),
        ("x = = 1", "neither a command nor Python: invalid syntax (help lists the commands)"),
        ("frobnicate the thing", "neither a command nor Python"),
        ("await x", "SyntaxError: an action can't await"),
        ("return 1 +", "return EXPRESSION: invalid syntax"),
        ("surgery", "surgery FILE:"),
        ("surgery /nowhere/at/all", "can't read /nowhere/at/all: "),
        ("len(range(3))", "3"),
        ("RATE = 2", "RATE: new, and hides the module's; to change that one: global RATE"),
    ],
)
def test_what_a_line_shows(line, shown):
    crash = FakeCrash(variables={})
    crash.space.globals["RATE"] = 1
    _, _, terminal = play(line, "pass", crash=crash)
    before = len(play("pass")[2].shown)
    assert "\n".join(terminal.shown[before:]).startswith(shown)
    assert bool(terminal.shown[before:]) is bool(shown)


def test_lines_for_ipython_go_to_the_action():
    crash = FakeCrash()
    play("!ls", "%who", "pass", crash=crash)
    assert crash.done == ["!ls", "%who"]


def test_surgery_takes_a_files_text(tmp_path, monkeypatch):
    path = tmp_path / "new code.py"
    path.write_text("def train():\n    return 'é'\n", "utf-8")
    assert play(f"surgery {path}")[0] == Surgery("def train():\n    return 'é'\n")
    assert play(f"surgery '{path}'")[0] == Surgery("def train():\n    return 'é'\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert isinstance(play("surgery ~/new code.py")[0], Surgery)
    path.write_bytes(b"\xff")
    assert "can't read" in play(f"surgery {path}", "pass")[2].text


def crashed(variables):
    with pytest.raises(ValueError, match="bad label") as caught:
        exec(compile("raise ValueError('bad label')", "<cell>", "exec"), {})
    return FakeCrash(
        exception=caught.value,
        stack=caught.value.__traceback__.tb_next,
        variables=variables,
        repeats=("f(batch)", "g()"),
        stale=("loss",),
    )


def test_the_stack_is_shown_once_with_what_a_repair_would_do():
    _, _, terminal = play("x = 1", "x", "pass", crash=crashed({}))
    assert terminal.text.count("ValueError: bad label") == 1
    assert "<module>, <cell>:1" in terminal.text
    assert "pass runs again: f(batch), g()" in terminal.text
    assert "skip leaves an older value in: loss" in terminal.text
    assert "The run waits. pass, action, surgery, skip, continue, break, return, abort" in terminal.text
    assert play("stack", "pass", crash=crashed({}))[2].text.count("<module>, <cell>:1") == 2


def test_a_refusal_is_shown_instead_of_the_stack():
    _, _, terminal = play("pass", refusal="there is no loop to leave")
    assert terminal.shown == ["refused: there is no loop to leave"]


def test_vars_shows_the_variables_as_they_are_now():
    many = {f"v{i:03}": i for i in range(100)}
    variables = {"total": 1, "@daifu_i1": 2, "math": types, "f": len, "C": int, "__x": 3, **many}
    _, _, terminal = play("total = 7", "vars", "pass", variables=variables)
    assert "total = 7" in terminal.shown
    assert terminal.shown[-1] == "... 41 more"
    assert not any(line.startswith(("@", "math", "f =", "C =", "__x")) for line in terminal.shown)


def test_help_lists_every_command():
    _, _, terminal = play("help", "pass")
    assert "return [EXPR]        return the value of an expression from the unit" in terminal.shown
    assert terminal.shown[-1] == "anything else        is Python, and runs as an action"


def test_what_it_asks_with():
    _, _, terminal = play("if 1:", "  x = 1", "", EOF, "n", "pass")
    assert terminal.asked == [PROMPT, MORE, MORE, PROMPT, ABORT_QUESTION, PROMPT]


def test_it_uses_input_and_print_of_the_moment(monkeypatch, capsys):
    monkeypatch.setattr("builtins.input", lambda prompt: "skip")
    assert Prompt()(FakeCrash()).then == Skip()
    assert "ValueError: bad label" in capsys.readouterr().out


def test_two_threads_are_asked_about_one_after_the_other():
    inside, most = [0], [0]

    def ask(prompt):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        done.wait(0)
        inside[0] -= 1
        return "pass"

    done, prompt = threading.Event(), Prompt(ask, lambda text: None)
    threads = [threading.Thread(target=prompt, args=(FakeCrash(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
