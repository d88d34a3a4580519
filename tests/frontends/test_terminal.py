"""The prompt on a terminal: a script and terminal IPython under a pseudo-terminal, through every command."""

from __future__ import annotations

import json
import os
import shlex
import sys
import textwrap

import pytest

pexpect = pytest.importorskip("pexpect")

pytestmark = [pytest.mark.timeout(120), pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

PROMPT = "daifu> "

SCRIPT = '''
import daifu_ipy

def load(batch, lr):
    """Load a batch."""
    scale = 2
    return scale * lr / batch

@daifu_ipy.vaccinate
def train(n, lr=1.0):
    losses = []
    loss = 0.0
    for epoch in range(1):
        for batch in range(n):
            loss = load(batch, lr)
            losses.append(loss)
    return losses

@daifu_ipy.vaccinate
def main():
    runs = 1
    result = train(3)
    print("runs:", runs, "result:", result)

main()
print("the end")
'''


class Terminal:
    """A process on a pseudo-terminal; what it shows is matched without colours."""

    def __init__(self, command, args, tmp_path, **env):
        plain = {"TERM": "dumb", "INPUTRC": "/dev/null", "PYTHON_BASIC_REPL": "1", "HOME": str(tmp_path)}
        self.process = pexpect.spawn(
            command, args, cwd=str(tmp_path), env={**os.environ, **plain, **env}, encoding="utf-8", timeout=10,
            dimensions=(50, 200),
        )  # fmt: skip
        self.process.delaybeforesend = None

    def says(self, typed, *expected, then=PROMPT):
        """Type a line; all the expected texts appear in this order, then the prompt."""
        if typed is not None:
            self.process.sendline(typed)
        for text in expected:
            self.process.expect_exact(text)
        if then:
            self.process.expect_exact(then)

    def ends(self, *expected):
        self.says(None, *expected, then=None)
        self.process.expect(pexpect.EOF)
        self.process.close()
        return self.process.exitstatus


@pytest.fixture
def script(tmp_path):
    spawned = []

    def spawn(text=SCRIPT, **env):
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(text))
        spawned.append(Terminal(sys.executable, [str(path)], tmp_path, **env))
        return spawned[-1]

    yield spawn
    for terminal in spawned:
        terminal.process.close(force=True)


LOOKS = [
    ("w", ["main, ", "[vaccinated]", "> train", "loss = load(batch, lr)", "  load, "]),
    ("where", ["> train"]),
    ("p lr * 2", ["2.0"]),
    ("p [lr * x for x in range(2)]", ["[0.0, 1.0]"]),
    ("pp losses", ["[]"]),
    ("p nothing", ["*** NameError: name 'nothing' is not defined"]),
    ("p (lr := 5)", ["*** SyntaxError: this only looks"]),
    ("whatis losses", ["<class 'list'>"]),
    ("a", ["n = 3", "lr = 1.0"]),
    ("l", ["for epoch in range(1):", "->    15 |             loss = load(batch, lr)"]),
    ("l 9, 10", ["@daifu_ipy.vaccinate", "def train"]),
    ("ll", ["def train", "return losses"]),
    ("source load", ["def load(batch, lr):"]),
    ("load?", ["load(batch, lr)", "Load a batch."]),
    ("?load", ["Load a batch."]),
    ("load??", ["def load(batch, lr):"]),
    ("lr?", ["<class 'float'>: 1.0"]),
    ("vars", ["batch = 0", "loss = 0.0", "lr = 1.0"]),
    ("stack", ["ZeroDivisionError"]),
    ("history", ["nothing has crashed"]),
    ("help", ["surgery [FILE]", "same N REPAIR", "assignments stick"]),
    ("help skip", ["leave the crashed statement out"]),
    ("help whatis", ["Print the type of the argument"]),
    ("display lr", ["display lr: 1.0"]),
    ("lr = 0.5", ["display lr: 0.5  [old: 1.0]"]),
    ("undisplay lr", []),
    ("alias half p %1 / 2", []),
    ("half lr", ["0.25"]),
    ("lr += 0.5 ;; p lr", ["1.0"]),
    ("", []),
    ("d", ["> load", "return scale * lr / batch"]),
    ("scale", ["2"]),
    ("scale = 3", ["load is not vaccinated: scale would not stick there, so nothing was run"]),
    ("d", ["*** Newest frame"]),
    ("u", ["> train"]),
    ("u", ["> main", "result = train(3)"]),
    ("runs = 7", []),
    ("u 9", ["*** Oldest frame"]),
    ("u", ["> <module>", "main()"]),
    ("d 2", ["> train"]),
    ("!c = 3", []),
    ("!c", ["3"]),
    ("c", ["c decides nothing", "abort? the run's state is lost [y/N]"]),
    ("n", []),
    ("q", ["abort? "]),
    ("", []),
    ("exit", ["abort? "]),
    ("no", []),
    ("EOF", ["abort? "]),
    ("n", []),
    ("s", ["*** s: a crashed run can't be stepped through"]),
    ("n", ["3"]),  # a variable
    ("unt", ["*** unt: a crashed run can't be stepped"]),
    ("r", ["*** r: return (in full) leaves the function"]),
    ("j 3", ["*** j: skip, continue, break and surgery go on elsewhere"]),
    ("b 5", ["*** b: a crashed run has no breakpoints"]),
    ("run", ["*** run: nothing starts anew"]),
    ("retval", ["*** retval: nothing has returned"]),
    ("debug f()", ["*** debug: no debugger inside"]),
    ("psas", ["there is no variable psas; did you mean pass?"]),
    ("skip this", ["skip takes nothing after it, so nothing was done"]),
    ("return 1 +", ["*** return EXPRESSION: invalid syntax"]),
    ("1 / 0", ["ZeroDivisionError: division by zero"]),
    ("same", ["*** same N REPAIR: same 5 skip"]),
    ("preview", ["*** preview FILE"]),
    ("preview /nowhere", ["can't read /nowhere"]),
    ("surgery /nowhere", ["can't read /nowhere"]),
    ("save state.pt", ["save"]),
    ("continue", ["the rest of this turn of 'for batch in range(n):' (line 14)", "do it? [y/N]"]),
    ("n", []),
    ("break", ["'for batch in range(n):' (line 14) is left", "do it? [y/N]"]),
    ("n", []),
    ("return", ["train ends here, and its caller gets None", "do it? [y/N]"]),
    ("n", []),
]  # fmt: skip


def test_a_script_through_every_command_that_does_not_decide(script):
    terminal = script()
    terminal.says(
        None, "in the loop: epoch = 0", "pass runs again: load(batch, lr)", "The run waits. pass, action, surgery, skip"
    )
    for typed, expected in LOOKS:
        asks = any("[y/N]" in text or text == "abort? " for text in expected)
        terminal.says(typed, *expected, then=None if asks else PROMPT)
    for line in ("for i in range(2):", "    lr += i", ""):
        terminal.says(line, then="  ...> " if line else PROMPT)
    terminal.says("interact", then=">>> ")
    terminal.says("lr", "2.0", then=">>> ")
    terminal.says("exit()")
    terminal.says("action", then="  ...> ")
    terminal.says("batch = 4", then="  ...> ")
    terminal.says("lr = 8", then="  ...> ")
    terminal.says("")
    terminal.process.send("loss")
    terminal.process.send("\t\t")
    terminal.says(None, "loss", "losses", then=None)
    terminal.process.sendcontrol("c")
    terminal.says(None, "abort? ", then=None)
    terminal.says("n")
    terminal.process.sendcontrol("d")
    terminal.says(None, "abort? ", then=None)
    terminal.says("n")
    terminal.says("pass", "pass: line 15 runs again: loss = load(batch, lr)", "runs twice: load(batch, lr)", then=None)
    assert terminal.ends("runs: 7 result: [4.0, 16.0, 8.0]", "the end") == 0


@pytest.mark.parametrize(
    ("typed", "result"),
    [
        (["skip"], "[0.0, 1.0, 0.5]"),
        (["continue", "y"], "[1.0, 0.5]"),
        (["break", "y"], "[]"),
        (["return losses + [9]"], "[9]"),
        (["same 2 skip"], "[0.0, 1.0, 0.5]"),
    ],
    ids=str,
)
def test_endings(script, typed, result):
    terminal = script(SCRIPT.replace("scale * lr", "lr"))
    terminal.says(None)
    for line in typed:
        terminal.says(line, then=None)
    assert terminal.ends(f"result: {result}") == 0


def test_an_outer_frame_is_repaired_after_a_question(script):
    terminal = script()
    terminal.says(None)
    terminal.says("u", "> main")
    terminal.says(
        "skip", "skip: line 22 is left out", "train and what it has not finished are left", "do it? [y/N]", then=None
    )
    terminal.says("n")
    terminal.says("result = 5")
    terminal.says("skip", "do it? [y/N]", then=None)
    terminal.says("y", then=None)
    assert terminal.ends("runs: 1 result: 5") == 0


@pytest.mark.parametrize("typed", [["abort"], ["q", "y"]], ids=str)
def test_abort(script, typed):
    terminal = script()
    terminal.says(None)
    for line in typed:
        terminal.says(line, then=None)
    assert terminal.ends("Traceback", "in load", "ZeroDivisionError: float division by zero") == 1


def test_the_end_of_input_aborts_at_the_second_time(script):
    terminal = script()
    terminal.says(None)
    terminal.process.sendcontrol("d")
    terminal.says(None, "abort? ", then=None)
    terminal.process.sendcontrol("d")
    assert terminal.ends("Traceback", "ZeroDivisionError") == 1


EDITOR = """
import json, sys
plan, path = sys.argv[1], sys.argv[-1]
with open(plan) as file:
    (old, new), *rest = json.load(file)
with open(plan, "w") as file:
    json.dump(rest, file)
with open(path) as file:
    text = file.read()
assert old in text, (old, text)
with open(path, "w") as file:
    file.write(new if new == "" else text.replace(old, new))
"""


@pytest.fixture
def editing(script, tmp_path):
    """A script whose user edits by replacing one text by another, each time that the editor opens."""

    def spawn(*edits):
        (tmp_path / "editor.py").write_text(EDITOR)
        (tmp_path / "plan.json").write_text(json.dumps(edits))
        command = shlex.join([sys.executable, str(tmp_path / "editor.py"), str(tmp_path / "plan.json")])
        terminal = script(EDITOR="false", VISUAL=command, TMPDIR=str(tmp_path))
        terminal.says(None)
        return terminal

    return spawn


def drafts(tmp_path):
    return sorted(tmp_path.glob("daifu-*.py"))


CALL = "loss = load(batch, lr)"


def test_surgery_in_an_editor(editing, tmp_path):
    terminal = editing((CALL, "loss = load(batch + 1, lr)"))
    terminal.says("surgery", f"-            {CALL}", "+            loss = load(batch + 1, lr)", then="apply?")
    assert [path.read_text().count("batch + 1") for path in drafts(tmp_path)] == [1]
    terminal.says("y", "surgery: ", then=None)
    assert terminal.ends("result: [2.0, 1.0, 0.6666666666666666]") == 0
    assert drafts(tmp_path) == []


@pytest.mark.parametrize("edit", [("load", "load"), ("load", "")], ids=["unchanged", "emptied"])
def test_what_is_not_changed_is_not_applied(editing, tmp_path, edit):
    terminal = editing(edit)
    terminal.says("surgery", "nothing was changed: nothing is applied")
    assert drafts(tmp_path) == []


def test_a_refused_text_is_shown_at_its_line_kept_and_opened_again(editing, tmp_path):
    terminal = editing((CALL, "loss = load(batch +, lr)"), ("+, lr", "+ 1, lr"), ("lr)", "lr) "))
    terminal.says(
        "surgery", "refused: the new source does not parse: line 7", "line 7: loss = load(batch +, lr)", then="[y/N]"
    )
    terminal.says("n", "not applied; your text is kept", str(drafts(tmp_path)[0]))
    terminal.says("surgery", "+            loss = load(batch + 1, lr)", then="apply?")
    terminal.says("n", "your text is kept")
    terminal.says("surgery", "goes on at line 7: ", then="apply?")
    assert len(drafts(tmp_path)) == 1
    terminal.says("999", "refused: ", "goes on at line 7: ", then="apply?")
    terminal.says("crash", "goes on at line 7: ", "runs again: load(batch, lr)", then="apply?")
    terminal.says("y", then=None)
    assert terminal.ends("result: [2.0, 1.0, 0.6666666666666666]") == 0
    assert drafts(tmp_path) == []


def test_surgery_by_a_file(script, tmp_path):
    terminal = script()
    terminal.says(None)
    new = tmp_path / "new.py"
    new.write_text(textwrap.dedent(SCRIPT).replace(CALL, "loss = load(batch + 1, lr)"))
    terminal.says("preview new.py", "+            loss = load(batch + 1, lr)", "goes on at line 15")
    terminal.says("surgery new.py", "goes on at line 15", then="apply?")
    terminal.says("", "not applied; your text is kept", "new.py")
    terminal.says("surgery new.py", then="apply?")
    terminal.says("y", then=None)
    assert terminal.ends("result: [2.0, 1.0, 0.6666666666666666]") == 0
    assert new.exists()


def test_surgery_of_a_helper_that_is_not_vaccinated(editing):
    terminal = editing(("/ batch", "/ (batch + 1)"))
    terminal.says("d", "> load")
    terminal.says("surgery", "+    return scale * lr / (batch + 1)", "new code for load", then="apply?")
    terminal.says("y", then=None)
    assert terminal.ends("result: [2.0, 1.0, 0.6666666666666666]") == 0


def test_an_editor_that_can_not_be_started(script):
    terminal = script(VISUAL="/no/such/editor")
    terminal.says(None)
    terminal.says("surgery", "can't start the editor", "set EDITOR, or surgery FILE")


THREADS = """
import threading
import daifu_ipy

@daifu_ipy.vaccinate
def work(name):
    ready.wait()
    1 / 0
    went_on.append(name)

ready, went_on = threading.Barrier(2), []
threads = [threading.Thread(target=work, args=(name,), name=name) for name in ("one", "two")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(went_on))
"""


def test_two_threads_are_asked_about_one_after_the_other(script):
    terminal = script(THREADS)
    terminal.says(None, "daifu: a crash in thread '")
    terminal.says("skip", "daifu: a crash in thread '")
    terminal.says("skip", then=None)
    assert terminal.ends("['one', 'two']") == 0


def test_two_threads_are_both_seen_where_the_output_goes_to_a_file(script, tmp_path):
    script(THREADS)  # writes it
    command = shlex.join([sys.executable, str(tmp_path / "train.py")]) + f" > {tmp_path / 'log'}"
    terminal = Terminal("/bin/sh", ["-c", command], tmp_path)
    terminal.says(None, "daifu: a crash in thread '")
    terminal.says("skip", "daifu: a crash in thread '")
    terminal.says("skip", then=None)
    assert terminal.ends() == 0
    assert (tmp_path / "log").read_text() == "['one', 'two']\n"


def test_a_crash_in_an_action_is_its_result(script):
    terminal = script()
    terminal.says(None)
    terminal.says("train(1)", "ZeroDivisionError: float division by zero", "line 1: train(1)")
    terminal.says("abort", then=None)
    assert terminal.ends("Traceback") == 1


def test_what_is_said_is_seen_where_the_output_goes_to_a_file(script, tmp_path):
    script()  # writes it
    command = shlex.join([sys.executable, str(tmp_path / "train.py")]) + f" > {tmp_path / 'log'}"
    terminal = Terminal("/bin/sh", ["-c", command], tmp_path)
    terminal.says(None, "The run waits")
    terminal.says("batch = 4", then=PROMPT)
    terminal.says("pass", "pass: line 15 runs again", then=None)
    assert terminal.ends() == 0
    assert (tmp_path / "log").read_text() == "runs: 1 result: [0.5, 2.0, 1.0]\nthe end\n"


def test_a_process_in_the_background_is_not_asked(tmp_path, script):
    script()
    command = f"set -m; {shlex.join([sys.executable, str(tmp_path / 'train.py')])} & wait $!; echo code $?"
    terminal = Terminal("/bin/sh", ["-c", command], tmp_path)
    assert terminal.ends("daifu: aborting; nobody can be asked here", "code 1") == 0


@pytest.fixture
def ipython(tmp_path):
    """Terminal IPython, with completion and all; what it shows is matched piece by piece between the escapes."""
    args = ["--no-banner", "--HistoryManager.enabled=False", "--no-confirm-exit", "--colors=nocolor"]
    env = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "IPYTHONDIR": str(tmp_path)}
    terminal = Terminal(sys.executable, ["-m", "IPython", *args], tmp_path, **env)
    terminal.says(None, then="In [1]:")
    terminal.process.send("%load_ext daifu_ipy\r")
    terminal.says(None, then="In [2]:")
    yield terminal
    terminal.process.close(force=True)


def test_terminal_ipython(ipython):
    def says(typed, *expected, then="daifu>"):
        ipython.process.send(f"{typed}\r")
        ipython.says(None, *expected, then=None)
        ipython.process.expect_exact(then)

    says("def load(b): return 10 / b\r", then="In [3]:")
    says("%%daifu --only load\rx = [0, 5]\ry = load(x[0])\r\r", "The run waits", then="daifu>")
    says("w", "> load", "[vaccinated]")
    says("p b + 1", "1")
    says("load?", "Signature:")
    says("!echo 4$((1+1))", "42")
    says("%who_ls list", "['x']")
    ipython.process.send("prin\t")
    ipython.process.expect_exact("print")
    ipython.process.sendcontrol("c")  # drops the line, as in IPython
    ipython.process.sendcontrol("d")
    ipython.process.expect_exact("abort? ")
    says("n")
    says("q", then="abort? ")
    says("n")
    says("b = 4")
    says("pass", "pass: line 1 runs again", then="In [4]:")
    says("y", "2.5", then="In [5]:")
    says("%%daifu --only load\rawait __import__('asyncio').sleep(0)\rload(0)\r\r", "The run waits", then="daifu>")
    says("b = 5", then="daifu>")
    says("pass", "2.0", then="In [6]:")
