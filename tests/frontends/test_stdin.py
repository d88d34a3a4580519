"""The prompt in a real kernel whose request allows stdin: a notebook without a panel, or `jupyter console`."""

from __future__ import annotations

import pytest

from tests.magic.kernel import STOP, Kernel, text

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

TRAIN = "def load(batch):\n    return 6 / batch\n\ndef train(n):\n    done = []\n    for batch in range(n):\n        y = load(batch)\n        done.append(y)\n    return done\n"
LOOPS = "%%daifu --only train\ntrain(3)"


@pytest.fixture(scope="module")
def kernel():
    made = Kernel("%load_ext daifu_ipy")
    yield made
    made.stop()


@pytest.fixture
def train(kernel):
    """Run the training cell anew and type these lines: what was shown, and the value."""

    def run(*typed):
        kernel.run(TRAIN)
        sent = kernel.run(LOOPS, typed=list(typed))
        assert sent[-1]["status"] == "ok"
        asked = [message["prompt"] for message in sent if message["type"] == "input_request"]
        (value,) = [message["data"]["text/plain"] for message in sent if message["type"] == "execute_result"]
        return text(sent), value, asked

    return run


LOOKS = [
    ("w", "> train, Cell In[n], line 7  [vaccinated]"),
    ("d", "> load, Cell In[n], line 2"),
    ("x = 1", "load is not vaccinated: x would not stick there"),
    ("u", "[vaccinated]"),
    ("u", "> Cell In[n], line 2  [vaccinated]"),
    ("d", "> train"),
    ("p done", "[]"),
    ("pp n", "3"),
    ("a", "n = 3"),
    ("l", "->     7 |         y = load(batch)"),
    ("ll", "      4 | def train(n):"),
    ("vars", "batch = 0"),
    ("load?", "Signature: load(batch)"),
    ("load??", "return 6 / batch"),
    ("whatis done", "<class 'list'>"),
    ("!echo in the $((40 + 2)) shell", "in the 42 shell"),
    ("!done", "[]"),
    ("%who_ls function", "'load', 'train'"),
    ("c", "c decides nothing"),
    ("n", ""),
    ("psas", "did you mean pass?"),
    ("history", ""),
    ("help", "surgery [FILE]"),
    ("s", "can't be stepped through"),
]  # fmt: skip


def test_every_command(train):
    shown, value, asked = train(*[line for line, _ in LOOKS], "batch = 2", "pass")
    at = 0
    for line, expected in LOOKS:
        assert expected in shown[at:], line
        at = shown.index(expected, at) + len(expected)
    assert "pass: line 7 runs again: y = load(batch)" in shown[at:]
    assert value == "[3.0, 6.0, 3.0]"
    assert asked[0] == "daifu> "


def raw(kernel, code, lines, interrupted_at=None):
    """Run a cell and type these lines: the text it showed as it was sent, and the reply. Stop follows a text."""
    shown, left, stopped = [], list(lines), [0]

    def output(message):
        shown.append(str(message["content"].get("text", "")))
        # a text may come in several messages
        if interrupted_at is not None and "".join(shown).count(interrupted_at) > stopped[0]:
            stopped[0] += 1
            kernel.manager.interrupt_kernel()

    def answer(message):
        kernel.client.input(left.pop(0) if left else "abort")

    reply = kernel.client.execute_interactive(code, stdin_hook=answer, output_hook=output, timeout=60)
    assert left == []
    return "".join(shown), reply["content"]["status"]


def test_nothing_that_a_saved_notebook_could_not_show(kernel):
    kernel.run(TRAIN)
    shown, status = raw(kernel, LOOPS, ["w", "load?", "pdoc load", "psource load", "ll", "continue", "y"])
    assert status == "ok"
    assert "Signature: load(batch)" in shown
    assert "\x1b" not in shown
    assert "ipykernel" not in shown.partition("Signature")[0]


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        (["skip", "return done"], "[]"),
        (["continue", "y"], "[6.0, 3.0]"),
        (["break", "y"], "[]"),
        (["return 'gone'"], "'gone'"),
        (["same 2 continue"], "[6.0, 3.0]"),
        (["surgery", "def train(n):", "    done = []", "    for batch in range(n):", "        y = load(batch + 1)",
          "        done.append(y)", "    return done", "END", "y"], "[6.0, 3.0, 2.0]"),
        (["for i in range(3):", "    batch += i", "", "pass"], "[2.0, 6.0, 3.0]"),
    ],
    ids=lambda typed: str(typed)[:20],
)  # fmt: skip
def test_endings(train, typed, value):
    assert train(*typed)[1] == value


def test_stop_at_the_prompt_asks(train):
    _, value, asked = train(STOP, "n", "break", STOP, STOP, "n", "batch = 1", "pass")
    assert asked[1] == "abort? the run's state is lost [y/N] "
    assert value == "[6.0, 6.0, 3.0]"


def test_stop_ends_a_command_and_not_the_run(kernel):
    kernel.run(TRAIN)
    sleep = "print('now') or __import__('time').sleep(600)"
    shown, status = raw(kernel, "%%daifu --only load\nkept = load(0)", [sleep, f"p {sleep}", "skip"], "now\n")
    assert status == "ok"
    assert shown.count("KeyboardInterrupt") == 2


def test_where_stdin_is_not_allowed_nobody_is_asked(kernel):
    kernel.run(TRAIN)
    sent = kernel.run(LOOPS)
    assert "daifu: aborting; nobody can be asked here" in text(sent)
    assert sent[-1]["status"] == "error"
