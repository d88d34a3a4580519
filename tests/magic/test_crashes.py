"""What happens under %%daifu when something crashes: who answers, what is said, how it goes on."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import pytest

import daifu_ipy
from daifu_ipy import Abort, Pass, Repair, Skip, Surgery, history, repair_with
from daifu_ipy.engine import versions
from daifu_ipy.engine.managers import settings
from daifu_ipy.frontends.choose import Environment
from tests.magic.notebook import Notebook

RETRY = "%%daifu --rules 'ZeroDivisionError -> action \"x = 2\" then pass'\n"
SKIP = "%%daifu --rules '* -> skip, limit=none'\n"


@pytest.fixture
def notebook():
    history.clear()
    with Notebook() as made:
        yield made


@pytest.fixture
def terminal(monkeypatch):
    """Somebody at the prompt, who types what the test puts into the list."""
    typed = []
    monkeypatch.setattr(Environment, "detect", classmethod(lambda cls: Environment(is_tty=True)))
    monkeypatch.setattr("builtins.input", lambda prompt="": typed.pop(0))
    return typed


@pytest.mark.parametrize(
    ("cell", "result"),
    [
        (RETRY + "x = 0\ny = 6 / x\ny", "3.0"),
        (RETRY + "x = 0\n6 / x", "3.0"),
        (RETRY + "x = 0\n[6 / x]", "[3.0]"),
        (RETRY + "def f(x):\n    y = 6 / x\n    return y\nf(0)", "3.0"),
        (RETRY + "class C:\n    def f(self, x):\n        return 6 / x\nC().f(0)", "3.0"),
        (RETRY + "for x in (1, 0, 3):\n    y = 6 / x\nx, y", "(3, 2.0)"),
        (RETRY + "async def f(): return 0\nx = await f()\nawait f()\n6 / x", "3.0"),
        (RETRY + "async def f(x):\n    return 6 / x\nawait f(0)", "3.0"),
        (RETRY + "from __future__ import annotations\nx: undefined = 0\n6 / x", "3.0"),
        (SKIP + "r = []\nfor x in (2, 0, 1):\n    r.append(6 / x)\nr", "[3.0, 6.0]"),
        (SKIP + "1 / 0\n'after'", "'after'"),
        (SKIP + "'before'\n1 / 0", "None"),
        ("%%time\n" + SKIP + "1 / 0\n5", "5"),
        (SKIP + "%%time\n1 / 0\n5", "5"),
        ("%%capture\n" + SKIP + "1 / 0\nx = 5\n", "None"),
    ],
)  # fmt: skip
def test_a_rule_repairs(notebook, cell, result):
    seen = notebook.run(cell)
    assert (seen.error, seen.result) == ("", result)
    assert [event.outcome for event in history] == ["recovered"]


def test_the_rules_line_is_in_the_output(notebook):
    seen = notebook.run("%%daifu --rules 'ValueError ~ \"bad\" -> skip, limit=5'\nx = 1\nraise ValueError('bad label')")
    assert seen.stdout == "daifu: ValueError: bad label, in Cell In[1], line 3: skip (rule 1, use 1 of 5)\n"


def test_output_that_the_program_redirects_is_not_where_reports_go(notebook):
    seen = notebook.run(
        SKIP + "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as o:\n    1 / 0\no.getvalue()"
    )
    assert seen.result == "''"
    assert "skip (rule 1, use 1)" in seen.stdout


def test_an_abort_shows_the_stack_and_then_what_ipython_shows(notebook):
    seen = notebook.run("%%daifu\nbatch = [1, 2]\nfor i in range(3):\n    batch[i]")
    stack, _, native = seen.stdout.partition("daifu: aborting; nobody can be asked here\n")
    assert "->    4 |     batch[i]" in stack
    assert "batch = [1, 2]" in stack
    assert "i = 2" in stack
    assert native.startswith("----")
    assert native.count("----> 4     batch[i]") == 1
    assert "daifu_ipy" not in native
    assert seen.lines == [("<module>", 4)]


def test_rules_come_in_order_and_count_anew_for_each_run(notebook):
    notebook.run("%config Daifu.rules = 'ZeroDivisionError -> return \"2\", limit=1'")
    notebook.run("def f(): return 1 / 0")
    cell = "%%daifu --rules 'ZeroDivisionError -> return \"1\", limit=1'\n[f(), f()]"
    for _ in range(2):
        assert notebook.run(cell).result == "[1, 2]"
    assert "ZeroDivisionError" in notebook.run("%%daifu\nf(), f()").error


def test_the_traits_rules_hold_for_vaccinated_functions_in_plain_cells(notebook):
    notebook.run("%config Daifu.rules = 'ZeroDivisionError -> return \"2\", limit=1'")
    notebook.runs("def f(): return 1 / 0", "%daifu vaccinate f")
    assert notebook.run("f()").result == "2"
    assert notebook.run("f()").result == "2"
    assert "ZeroDivisionError" in notebook.run("f(), f()").error


def test_a_cells_rules_hold_for_the_functions_that_it_defines(notebook):
    notebook.run("%%daifu --rules 'ZeroDivisionError -> return \"5\", limit=none'\ndef f(): return 1 / 0")
    assert notebook.run("f()").result == "5"
    assert "return (rule 1, use 2)" in notebook.run("f()").stdout


def test_the_running_cells_rules_come_before_those_of_where_a_function_was_defined(notebook):
    notebook.run("%%daifu --rules 'ZeroDivisionError -> return \"5\"'\ndef f(): return 1 / 0")
    assert notebook.run("%%daifu --rules 'ZeroDivisionError -> return \"6\"'\nf()").result == "6"


def test_a_thread_of_a_cell_is_answered_by_its_rules(notebook):
    seen = notebook.run(
        SKIP + "import threading\ndone = []\ndef work():\n    1 / 0\n    done.append(1)\n"
        "t = threading.Thread(target=work)\nt.start()\nt.join()\ndone"
    )
    assert (seen.result, seen.error) == ("[1]", "")


def test_after_surgery_the_cells_rules_still_hold(notebook):
    new = "x = 1\nfor i in range(3):\n    if i == 1:\n        i = 'b'\n    if i == 2:\n        1 / 0\n'end'"
    answers = [Surgery("'%%daifu'\n" + new)]
    default = settings.default

    def once(crash):
        return answers.pop() if answers else default(crash)

    settings.default = once
    try:
        seen = notebook.run(SKIP + new.replace("i = 'b'", "undefined"))
    finally:
        settings.default = default
    assert (seen.error, answers) == ("", [])
    assert (
        f"division by zero, in surgery {versions.get().number} of Cell In[1], line 7: skip (rule 1, use 1)"
        in seen.stdout
    )


def test_a_manager_set_by_api_wins_and_is_reported(notebook):
    with repair_with(lambda crash: Repair(("x = 4",), Pass())):
        seen = notebook.run(SKIP + "x = 0\n8 / x")
    assert seen.result == "2.0"
    assert "daifu: ZeroDivisionError: division by zero, in Cell In[1], line 3: 1 action, then pass\n" in seen.stdout


def test_a_keyboard_interrupt_is_declined(notebook):
    seen = notebook.run("%%daifu --rules 'KeyboardInterrupt -> skip'\nraise KeyboardInterrupt\nx = 1")
    assert seen.error == "KeyboardInterrupt: "
    assert "x" not in notebook.shell.user_ns
    assert len(history) == 0


def test_what_the_program_handles_is_no_crash(notebook):
    notebook.run("def f():\n    raise ValueError('x')")
    seen = notebook.run(SKIP + "try:\n    f()\nexcept ValueError:\n    r = 'handled'\nr")
    assert (seen.result, len(history)) == ("'handled'", 0)


@pytest.mark.parametrize("mode", ["auto", "all"])
def test_the_intercept_trait(notebook, mode):
    notebook.run(f"%config Daifu.intercept = '{mode}'")
    assert settings.intercept == mode
    seen = notebook.run(
        SKIP
        + "def f():\n    1 / 0\n    return 'repaired'\ntry:\n    r = f()\nexcept ValueError:\n    r = 'handled'\nexcept ZeroDivisionError:\n    r = 'handled'\nr"
    )
    assert seen.result == ("'handled'" if mode == "auto" else "'repaired'")


@pytest.mark.parametrize(
    ("typed", "result", "actions"),
    [
        (["x = 2", "pass"], "3.0", ("x = 2",)),
        (["x", "x = 1 /", "x = 0 / 0", "x = 3", "pass"], "2.0", ("x = 3",)),
        (["y = 1", "skip"], "None", ("y = 1",)),
        (["time", "x, Out", "len(In)", "x = 6", "pass"], "1.0", ("len(In)", "x = 6")),
        (["!no-such-command-xyz", "x = 1", "pass"], "6.0", None),
    ],
)  # fmt: skip
def test_the_prompt(notebook, terminal, typed, result, actions):
    terminal += typed
    seen = notebook.run("%%daifu\nx = 0\n6 / x")
    assert terminal == []
    assert (seen.error, seen.result) == ("", result)
    (event,) = history.events
    if actions is not None:
        assert tuple(event.repair["actions"]) == actions


def test_the_prompt_in_a_function(notebook, terminal):
    terminal += ["n", "n = 4", "vars", "pass"]
    notebook.run("def f(n):\n    return 8 / n")
    seen = notebook.run("%%daifu\nf(0)")
    assert seen.result == "2.0"
    assert "n = 4\n" in seen.stdout
    assert seen.stdout.endswith("daifu: ZeroDivisionError: division by zero, in f, line 2: pass\nOut[2]: 2.0\n")


@pytest.mark.parametrize(
    ("code", "shown"),
    [("z = !echo a\nz", "['a']"), ("%who_ls no_such_type", "[]"), ("x = %who_ls int\n'x' in x", "True"), ("time", "0")],
)
def test_actions_take_ipythons_syntax(notebook, code, shown):
    results = []

    def manager(crash):
        results.append(crash.action(code))
        return Pass() if crash.action("x = 1").ok else None

    with repair_with(manager):
        assert notebook.run("%%daifu\ntime = x = 0\n6 / x").result == "6.0"
    assert [(r.value, r.error) for r in results] == [(shown, None)]


def test_the_history_replays_what_was_typed(notebook, terminal):
    terminal += ["x = 2", "oops", "pass"]
    assert notebook.run("%%daifu\nx = 0\n6 / x").result == "3.0"
    from daifu_ipy.repair.replay import replay

    with repair_with(replay(history.to_json())):
        assert notebook.run("%%daifu\nx = 0\n6 / x").result == "3.0"


def test_modes(notebook, terminal):
    for mode in ("abort", "rules"):
        seen = notebook.run(f"%%daifu --on-crash {mode}\n1 / 0")
        assert f"daifu: aborting; on-crash is {mode}\n" in seen.stdout
    notebook.run("%config Daifu.answer = 'abort'")
    assert "on-crash is abort" in notebook.run("%%daifu\n1 / 0").stdout
    terminal.append("skip")
    assert notebook.run("%%daifu --on-crash prompt\n1 / 0\n3").result == "3"
    assert terminal == []


def test_the_last_value_may_come_from_a_repaired_statement(notebook):
    with repair_with(lambda crash: Skip()):
        seen = notebook.run("%%daifu\nx = 3\nx.no_such")
    assert (seen.result, seen.error) == ("None", "")
    assert notebook["Out"] == {}


def test_a_repaired_cell_leaves_nothing_behind(notebook):
    before = set(notebook.shell.user_ns)
    assert notebook.run(SKIP + "for i in range(2):\n    1 / 0").error == ""
    after = set(notebook.shell.user_ns) - before
    assert {name for name in after if not name.startswith("_")} == {"i"}
    assert not any("daifu" in name for name in notebook.shell.user_ns if name != "__builtins__")


class Big:
    pass


def test_memory_of_the_failed_attempt_is_free_when_the_statement_runs_again(notebook):
    alive = []

    def use(fail):
        big = Big()
        alive.append(weakref.ref(big))
        if fail:
            raise MemoryError("out of memory")
        return [ref() is None for ref in alive[:-1]]

    def manager(crash):
        notebook.shell.InteractiveTB.tb = crash.exception.__traceback__  # as %tb at a prompt would
        crash.action("fail = False")
        return Pass()

    notebook.shell.user_ns["use"] = use
    with repair_with(manager):
        seen = notebook.run("%%daifu\nfail = True\nuse(fail)")
    assert seen.result == "[True]"
    assert sys.exc_info() == (None, None, None)


def test_an_aborted_crash_dies_with_ipythons_own_memory_of_it(notebook):
    alive = []
    notebook.shell.user_ns["watch"] = lambda: alive.append(weakref.ref(big := Big())) or big
    notebook.run("%%daifu\ndef f():\n    big = watch()\n    1 / 0\nf()")
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        sys.__dict__.pop(name, None)
    notebook.shell.InteractiveTB.tb = notebook.shell.last_execution_result = None
    gc.collect()
    assert [ref() for ref in alive] == [None]


def test_debug_after_an_abort_has_the_frames(notebook):
    notebook.run("%%daifu\ndef f(n):\n    return 1 / n\nf(0)")
    entries = []
    entry = sys.last_traceback
    while entry is not None:
        entries.append(entry.tb_frame)
        entry = entry.tb_next
    assert entries[-1].f_locals["n"] == 0
    assert entries[-2].f_globals is notebook.shell.user_ns


def test_nested_cells_have_their_own_settings(notebook):
    notebook.run("inner = '''%%daifu --rules \"ZeroDivisionError -> skip\"\n1 / 0\n2'''")
    seen = notebook.run("%%daifu --rules 'KeyError -> skip'\nget_ipython().run_cell(inner)\n{}[1]\n3")
    assert (seen.error, seen.stdout.splitlines()[-1]) == ("", "Out[2]: 3")
    assert [event.error for event in history] == ["ZeroDivisionError", "KeyError"]


def test_api_abort_is_native(notebook):
    with repair_with(lambda crash: Abort()):
        seen = notebook.run("%%daifu\n1 / 0")
    assert seen.stdout.startswith("----")
    assert seen.lines == [("<module>", 2)]


def test_without_the_extension_the_default_manager_answers(capsys):
    assert settings.default is daifu_ipy.magic.answers.answer

    @daifu_ipy.vaccinate
    def f():
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        threaded(f)
    assert "daifu: aborting; nobody can be asked here" in capsys.readouterr().out


def threaded(f):
    """Call a function where no handler is around it, and raise what it raises."""
    raised = []

    def run():
        import threading as t

        t.excepthook = lambda args: raised.append(args.exc_value)
        f()

    before = threading.excepthook
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.excepthook = before
    raise raised[0]
