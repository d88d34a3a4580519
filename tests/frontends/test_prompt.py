"""The prompt: what a typed line does, and that nothing but a command decides."""

from __future__ import annotations

import gc
import itertools
import linecache
import sys
import threading
import weakref

import pytest

from daifu_ipy import Abort, Break, Continue, Pass, Repair, Return, Skip, Surgery, pending, repair_with, vaccinate
from daifu_ipy.frontends.prompt import Prompt, debugger
from daifu_ipy.frontends.repair_pdb import PROMPT, SURE
from daifu_ipy.frontends.typed import is_about, is_python, nearest
from daifu_ipy.repair.rules import SameHere

EOF, CTRL_C = EOFError, KeyboardInterrupt
RATE = 1


def load(batch, lr):
    scale = 2
    return scale * lr / batch


@vaccinate
def train(batches, lr=1.0):
    losses, loss = [], None
    for batch in batches:
        loss = load(batch, lr)
        losses.append(loss)
    return losses


@vaccinate
def straight(x, gone=1):
    return 1 / x


class Typing:
    """Types the given lines (an exception class is raised) and keeps what it is asked."""

    def __init__(self, *lines):
        self.lines, self.asked, self.namespace, self.repair = list(lines), [], {}, None
        self.prompt = Prompt(self.ask)

    def ask(self, prompt):
        self.asked.append(prompt)
        line = self.lines.pop(0)
        if isinstance(line, type):
            raise line
        return line

    def __call__(self, crash):
        self.repair = self.prompt(crash)
        self.namespace = {name: value for name, value in crash.namespace.items() if name not in ("x", "gone")}
        return self.repair.repair if isinstance(self.repair, SameHere) else self.repair


def play(*lines, run=lambda: straight(0)):
    """Crash once and type these lines, all of them; whatever they answer, the crashed function returns."""
    typing = Typing(*lines)

    def manager(crash):
        typing(crash)
        return Return("None")

    with repair_with(manager):
        assert run() is None
    assert typing.lines == []
    return typing


IN_LOOP = [
    (["pass"], Pass()),
    (["  pass  "], Pass()),
    (["skip"], Skip()),
    (["continue", "y"], Continue()),
    (["continue", "n", "pass"], Pass()),
    (["continue", "", "pass"], Pass()),
    (["continue", EOF, "pass"], Pass()),
    (["continue", CTRL_C, "pass"], Pass()),
    (["break", "yes"], Break()),
    (["break", "n", "skip"], Skip()),
    (["abort"], Abort()),
    (["return", "y"], Return("None")),
    (["return total / n"], Return("total / n")),
    (["return", "n", "skip"], Skip()),
    (["", "  ", "skip"], Skip()),
    (["quit", "n", "skip"], Skip()),
    (["exit", "y"], Abort()),
    (["c", "n", "cont", "n", "pass"], Pass()),
    (["q", "n", "EOF", "n", "pass"], Pass()),
    ([EOF, EOF], Abort()),
    ([EOF, "y"], Abort()),
    ([EOF, "n", "pass"], Pass()),
    ([EOF, "", "pass"], Pass()),
    ([EOF, CTRL_C, "pass"], Pass()),
    ([CTRL_C, "no", CTRL_C, "n", "pass"], Pass()),
    ([CTRL_C, "yes"], Abort()),
    ([CTRL_C, EOF], Abort()),
    (["action", EOF, EOF, EOF], Abort()),
    (["if 1:", EOF, EOF, EOF], Abort()),
    (["s", "n", "r", "b", "j 3", "unt", "run", "until", "restart", "tbreak", "commands", "pass"], Pass()),
    (["pass now", "skip it", "abort please", "break 15", "continue;", "pass"], Pass()),
    (["alias go pass", "go"], Pass()),
    (["lr = 2 ;; skip"], Skip()),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "ending"), IN_LOOP, ids=repr)
def test_what_decides(lines, ending):
    assert play(*lines, run=lambda: train([0])).repair == Repair(then=ending)


@pytest.mark.parametrize("lines", [[RuntimeError], [EOF, RuntimeError], ["action", RuntimeError], ["if 1:", RuntimeError], ["break", RuntimeError]])  # fmt: skip
def test_stdin_that_does_not_work_aborts(lines, capsys):
    assert play(*lines).repair == Repair(then=Abort())
    assert "daifu: can't ask here (RuntimeError: ): aborting" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "variables"),
    [
        (["y = 1"], {"y": 1}),
        (["y = 1; z = 2"], {"y": 1, "z": 2}),
        (["!y = 1"], {"y": 1}),
        (["action y = 1"], {"y": 1}),
        (["action", "y = 1", "z = y + 1", ""], {"y": 1, "z": 2}),
        (["action", EOF], {}),
        (["action", "y = 1", CTRL_C], {}),
        (["action for i in (1, 2):", "  y = i", ""], {"i": 2, "y": 2}),
        (["for i in (1, 2):", "  y = i", ""], {"i": 2, "y": 2}),
        (["for i in (1, 2):", CTRL_C], {}),
        (["for i in (1, 2): y = i", ""], {"i": 2, "y": 2}),
        (["y = [1,", "2]"], {"y": [1, 2]}),
        (["y = '''a", "b'''"], {"y": "a\nb"}),
        (["y = 'a;;b'"], {"y": "a;;b"}),
        (["skip = 3"], {"skip": 3}),
        (["n = 3", "n += 1"], {"n": 4}),
        (["p, c = 1, 2"], {"p": 1, "c": 2}),
        (["l: int = 3"], {"l": 3}),
        (["l = [1]", "l[0] = 2"], {"l": [2]}),
        (["l = [1]", "l.append(2)"], {"l": [1, 2]}),
        (["abort = [1]"], {"abort": [1]}),
        (["y = 1", "y += 1", "1 / 0", "y += 1"], {"y": 3}),
        (["y = 1", "y += 1", ""], {"y": 2}),
        (["interact", "y = 1", "for i in (1,):", "  y += i", "", CTRL_C, "exit()"], {"y": 2, "i": 1}),
        (["interact", "skip = 1", EOF], {"skip": 1}),
        (["p (x := 5)"], {}),
        (["def f():", "  return 3", "", "y = f()", "del f"], {"y": 3}),
        (["import math", "y = math.pi > 3", "del math"], {"y": True}),
    ],
    ids=repr,
)
def test_python_changes_the_crashed_variables(lines, variables):
    assert play(*lines, "pass").namespace == variables


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("1 + 1", "2"),
        ("y = 5", ""),
        ("gone", "1"),
        ("1 / 0", "ZeroDivisionError: division by zero\n  line 1: 1 / 0"),
        ("action return 5", "SyntaxError: an action can't use 'return'"),
        ("x = = 1", "*** neither a command nor Python: invalid syntax (help lists the commands)"),
        ("frobnicate the thing", "*** neither a command nor Python: invalid syntax"),
        ("surgry", "*** neither a command nor Python: there is no variable surgry; did you mean surgery?"),
        ("PASS", "*** neither a command nor Python: there is no variable PASS; did you mean pass?"),
        ("await x", "SyntaxError: an action can't await"),
        ("return 1 +", "*** return EXPRESSION: invalid syntax"),
        ("surgery /nowhere/at/all", "can't read /nowhere/at/all: "),
        ("len(range(3))", "3"),
        ("vars(object())", "TypeError: vars() argument must have __dict__ attribute"),
        ("RATE = 2", "RATE: new, and hides the module's; to change that one: global RATE"),
        ("same 0 skip", "*** same N REPAIR"),
        ("same 2 jump", "*** "),
        ("help nothing", "*** No help for 'nothing'"),
        ("p [x for _ in range(2)]", "[0, 0]"),
        ("x?", "<class 'int'>: 0"),
    ],
)  # fmt: skip
def test_what_a_line_shows(line, shown, capsys):
    play("pass")
    before = len(capsys.readouterr().out)
    play(line, "pass")
    text = capsys.readouterr().out
    end = text.rindex("pass: line")
    start = text.index("help lists the rest).\n") + len("help lists the rest).\n")
    assert before > 0
    assert text[start:end].startswith(shown)
    assert bool(text[start:end]) is bool(shown)


def test_an_error_in_a_command_or_ctrl_c_costs_nothing(capsys):
    class Odd:
        def __repr__(self):
            raise CTRL_C

    play("p odd", "odd", "pp 1 / 0", "a", "vars", "pass", run=lambda: odd(Odd()))
    assert "*** KeyboardInterrupt" in capsys.readouterr().out


@vaccinate
def odd(odd):
    return 1 / 0


FIRST = train.__code__.co_firstlineno


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["pass"], "pass: line CALL runs again: loss = load(batch, lr) (had begun, and runs twice: load(batch, lr))"),
        (["skip"], "skip: line CALL is left out: loss = load(batch, lr); an older value stays in loss"),
        (["continue", "y"], "continue: the rest of this turn of 'for batch in batches:' (line LOOP) is left out, and its next one begins"),
        (["break", "y"], "break: 'for batch in batches:' (line LOOP) is left, and the run goes on after it"),
        (["return lr"], "return: train ends here, and its caller gets lr"),
        (["abort"], "abort: ZeroDivisionError: float division by zero goes on, as if nothing had intercepted it"),
        (["same 3 skip"], "an older value stays in loss; and so up to 3 times at this place"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_will_happen_is_said_first(lines, said, capsys):
    play(*lines, run=lambda: train([0]))
    said = said.replace("CALL", str(FIRST + 4)).replace("LOOP", str(FIRST + 3))
    assert said in capsys.readouterr().out


def test_same_is_an_answer_for_later_crashes_too():
    assert play("same 5 skip").repair == SameHere(Repair(then=Skip()), 5)
    assert play("same 2 action 'x = 1' then pass").repair == SameHere(Repair(("x = 1",), Pass()), 2)


def test_the_stack_is_shown_once_with_what_a_repair_would_do(capsys):
    play("lr = 1", "pass", run=lambda: train([0]))
    text = capsys.readouterr().out
    assert text.count("ZeroDivisionError: float division by zero") == 1
    assert "pass runs again: load(batch, lr)\nskip leaves an older value in: loss\n" in text
    assert "The run waits. pass, action, surgery, skip, continue, break, return, abort; or Python" in text


def outer_of(run):
    @vaccinate
    def outer():
        value = "old"
        result = run()
        return value, result

    return outer


def test_the_selected_frame_is_the_one_that_is_changed_and_repaired():
    typing = Typing("u", "u", "value = 'new'", "d", "d", "u", "u", "result = 5", "skip", "y")
    with repair_with(typing):
        assert outer_of(lambda: straight(0))() == ("new", 5)
    assert typing.repair == Repair(then=Skip(), frame=1)
    assert typing.asked[-1] == SURE


def test_from_a_frame_that_is_not_vaccinated_the_crashed_unit_is_repaired():
    typing = Typing("d", "scale", "u", "batch = 2", "d", "pass")
    with repair_with(typing):
        assert train([0]) == [1.0]
    assert typing.repair == Repair()


def test_a_repair_refused_before_is_not_sent_again_without_a_question(capsys):
    typing = Typing("continue", "y", "continue", "y", "n", "return 5")
    with repair_with(typing):
        assert straight(0) == 5
    text = capsys.readouterr().out
    assert text.count("refused: ") == 1
    assert "this was refused; refused again, it would abort the run" in text


def test_same_asks_too_before_it_sends_what_was_refused(capsys):
    typing = Typing("same 3 continue", "same 3 continue", "n", "continue", "y", "n", "same 2 return '5'")
    with repair_with(typing):
        assert straight(0) == 5
    assert typing.repair == SameHere(Repair(then=Return("5")), 2)
    assert capsys.readouterr().out.count("refused: ") == 1


def test_an_ending_typed_in_a_helper_that_is_not_vaccinated_asks_first():
    typing = Typing("d", "return 5", "n", "skip", "n", "batch = 2", "surgery", CTRL_C, "return [9]", "y")
    with repair_with(typing):
        assert train([0]) == [9]
    assert typing.asked.count(SURE) == 3


NUMBERS = itertools.count()


def vaccinated_again():
    """`straight` anew, since a surgery changes it for good."""
    source, filename = "def straight(x, gone=1):\n    return 1 / x\n", f"<made {next(NUMBERS)}>"
    space = {"__name__": "made"}
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), space)
    return vaccinate(space["straight"])


@pytest.fixture(autouse=True)
def drafts_here(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def new_text(tmp_path):
    path = tmp_path / "new code.py"
    path.write_text("def straight(x, gone=1):\n    return 1 / (x + 1)  # é\n", "utf-8")
    return path


def test_surgery_by_a_file(new_text, capsys):
    typing = Typing(f"preview {new_text}", f"surgery '{new_text}'", "n", f"surgery {new_text}", "y")
    made = vaccinated_again()
    with repair_with(typing):
        assert made(0) == 1.0
    assert typing.repair == Repair(then=Surgery(new_text.read_text("utf-8")))
    text = capsys.readouterr().out
    assert "-    return 1 / x\n+    return 1 / (x + 1)  # é\n" in text
    assert "not applied; your text is kept" in text
    assert str(new_text) in text


def test_surgery_by_pasted_lines():
    lines = ["def straight(x, gone=1):", "", "    return 7", "END"]
    typing = Typing("surgery", "def straight(x:", "END", "n", "surgery", *lines, "y")
    with repair_with(typing):
        assert vaccinated_again()(0) == 7


@pytest.mark.parametrize(
    "lines", [["END"], [CTRL_C], ["def straight(x, gone=1):", "    return 1 / x", "END"]], ids=repr
)
def test_a_surgery_that_changes_nothing_is_none(lines):
    typing = Typing("surgery", *lines, "return 3")
    with repair_with(typing):
        assert vaccinated_again()(0) == 3


BROKEN = ["surgery", "def straight(x:", "END", "n"]


@pytest.fixture
def kept(tmp_path):
    """The texts in the files of drafts."""
    return lambda: [path.read_text("utf-8") for path in sorted(tmp_path.glob("daifu-*.py"))]


@pytest.mark.parametrize("lines", [["END"], [CTRL_C]], ids=repr)
def test_a_kept_text_stays_when_nothing_new_is_written(lines, kept, capsys):
    play(*BROKEN, "surgery", *lines, "pass")
    assert kept() == ["def straight(x:"]
    assert "your last text is in" in capsys.readouterr().out


def test_a_kept_text_stays_when_another_one_is_not_applied(new_text, kept, capsys):
    play(*BROKEN, f"surgery {new_text}", "n", "surgery", "def straight(:", "END", "n", "pass")
    texts = ["def straight(:", "def straight(x:", new_text.read_text("utf-8")]
    assert sorted(kept()) == sorted(texts)
    assert f"your text is kept: surgery opens it again, and it is in {new_text}\n" in capsys.readouterr().out


def test_each_function_has_a_draft_of_its_own(kept, capsys):
    play(
        *BROKEN,
        "u",
        "u",
        "surgery",
        "def outer(:",
        "END",
        "n",
        "d",
        "d",
        "pass",
        run=lambda: outer_of(lambda: straight(0))()[1],
    )
    assert sorted(kept()) == ["def outer(:", "def straight(x:"]
    assert "your last text is in" not in capsys.readouterr().out


def test_a_text_that_can_not_be_read(tmp_path, capsys):
    (tmp_path / "bytes").write_bytes(b"\xff")
    play(f"surgery {tmp_path / 'bytes'}", "pass")
    assert "can't read" in capsys.readouterr().out


def test_it_uses_input_of_the_moment(monkeypatch, capsys):
    monkeypatch.setattr("builtins.input", lambda prompt: "skip")
    with repair_with(Prompt()):
        assert straight(0) is None
    assert "ZeroDivisionError: division by zero" in capsys.readouterr().out


def test_what_another_thread_has_decided_is_taken():
    def ask(prompt):
        (crash,) = pending()
        assert crash.decide(Return("42"))
        raise CTRL_C

    with repair_with(Prompt(ask)):
        assert straight(0) == 42


def test_two_threads_are_asked_about_one_after_the_other(capsys):
    inside, most, waiting = [0], [0], threading.Barrier(3)

    def ask(prompt):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        inside[0] -= 1
        return "return 1" if prompt == PROMPT else "y"

    prompt, results = Prompt(ask), []

    def run():
        waiting.wait()
        with repair_with(prompt):
            results.append(straight(0))

    threads = [threading.Thread(target=run, name=f"worker {number}") for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert results == [1, 1, 1]
    text = capsys.readouterr().out
    assert all(f"a crash in thread 'worker {number}'" in text for number in range(3))


def test_a_crash_that_waits_for_its_turn_can_be_decided_elsewhere(capsys):
    arrived, results = threading.Event(), []

    def ask(prompt):
        second.start()
        assert arrived.wait(30)
        next(crash for crash in pending() if crash.thread is second).decide(Return("42"))
        second.join(30)
        return "return 7" if results == [42] else "return None"

    prompt = Prompt(ask)

    def manager(crash):
        arrived.set()
        return prompt(crash)

    def run():
        with repair_with(manager):
            results.append(straight(0))

    second = threading.Thread(target=run)
    with repair_with(prompt):
        assert straight(0) == 7
    assert capsys.readouterr().out.count("The run waits") == 1


def test_what_is_decided_before_the_question_is_not_asked(capsys):
    prompt = Prompt(lambda prompt: pytest.fail("asked"))

    def manager(crash):
        assert crash.decide(Return("42"))
        return prompt(crash)

    with repair_with(manager):
        assert straight(0) == 42


class Big:
    """Stands for a tensor."""


@pytest.mark.parametrize(
    "lines",
    [["pass"], ["w", "d", "vars", "a", "ll", "p big", "u", "u", "vars", "d", "display big", "big", "y = big", "del y", "pass"]],
    ids=["at once", "after looking"],
)  # fmt: skip
def test_after_an_ending_nothing_of_the_frames_is_kept(lines):
    refs, fails = [], [1]

    def helper():
        big = Big()
        refs.append(weakref.ref(big))
        if fails:
            return fails.pop() / 0
        return len([ref for ref in refs if ref() is not None])

    @vaccinate
    def unit():
        return helper()

    def caller():
        big = Big()
        refs.append(weakref.ref(big))
        result = unit()
        del big
        return result + len([ref for ref in refs if ref() is not None])

    gc.disable()
    try:
        with repair_with(Typing(*lines)):
            assert caller() == 2 + 0  # while the helper runs again: its own and the caller's; then none
    finally:
        gc.enable()


def test_completion_offers_commands_and_the_names_of_the_frame():
    from daifu_ipy.frontends.completion import candidates

    names = {"batch": 1, "text": "", "@daifu_i1": 2}
    assert candidates("sk", "sk", names, ["skip", "pass"]) == ["skip"]
    assert "batch" in candidates("ba", "p ba", names, ["batches"])
    assert "batches" not in candidates("ba", "p ba", names, ["batches"])
    assert "text.upper()" in candidates("text.up", "text.up", names, [])
    assert not any("@" in name for name in candidates("", "", names, []))


def test_completion_gives_the_program_its_own_back():
    readline = pytest.importorskip("readline")
    before = readline.get_completer(), readline.get_completer_delims()
    play("lr = 1", "pass")
    assert (readline.get_completer(), readline.get_completer_delims()) == before


@pytest.mark.parametrize(
    ("line", "python"),
    [("skip", False), ("skip = 1", True), ("skip == 1", False), ("p x == 1", False), ("p(x)", False), ("vars(x)", True),
     ("l[0]", True), ("l 3, 4", False), ("n.a", True), ("n .a", False), ("c |= 3", True), ("q: int = 4", True),
     ("stack, vars = 1, 2", True), ("return (1)", False), ("3", False),
     ("n + 1", True), ("n+1", True), ("n - 1", True), ("n / l", True), ("l == n", True), ("n != 2", True), ("n<2", True),
     ("n is None", True), ("n in l", True), ("n not in l", True), ("n and l", True), ("n or l", True),
     ("n if l else 0", True), ("n", False), ("l 3", False), ("n -x", False), ("n *", False), ("n index", False),
     ("l in", False), ("p + 1", False), ("w", False), ("return - 1", False)],
)  # fmt: skip
def test_which_lines_are_python(line, python):
    assert is_python(line, {"l", "n"}) is python


@pytest.mark.parametrize(
    ("code", "about"),
    [("ls", False), ("ls -l", False), ("x", True), ("x = 3", True), ("print(x)", True), ("id", False), ("git status", False),
     ("nvidia-smi", False), ("len(x) + y", False)],
)  # fmt: skip
def test_what_follows_an_exclamation_mark(code, about):
    assert is_about(code, {"x"}) is about


def test_nearest():
    assert [nearest(word, ["pass", "skip", "surgery"]) for word in ("psas", "Skp", "surgey", "loss_fn")] == [
        "pass",
        "skip",
        "surgery",
        None,
    ]


def test_a_script_needs_no_shell(tmp_path):
    import pdb
    import subprocess

    code = "import sys; from daifu_ipy.frontends.prompt import shell_base; print(shell_base().__module__, 'IPython' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "pdb False\n"
    assert issubclass(debugger(pdb.Pdb), pdb.Pdb)
