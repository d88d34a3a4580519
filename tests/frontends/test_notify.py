"""The on_crash hook: what it is told, and that nothing of it can hurt the run or the shell."""

from __future__ import annotations

import json
import threading

import pytest

from daifu_ipy.frontends.notify import notice, notify
from tests.fakes import FakeCrash


def run(hook, crash=None):
    """What was shown."""
    shown = []
    notify(hook, crash or FakeCrash(), shown.append).join(30)
    return shown


def test_a_function_gets_plain_data():
    told = []
    assert run(told.append) == []
    assert told[0].pop("time")
    assert told[0].pop("process")
    assert told == [
        {
            "text": "ValueError: bad label, in train, line 15: the run waits for a repair",
            "unit": "train",
            "file": "train.py",
            "line": 15,
            "error": "ValueError",
            "message": "bad label",
        }
    ]


def test_it_is_bounded_and_holds_no_variable():
    crash = FakeCrash(exception=ValueError("x\n" * 10**6), variables={"password": "secret"})
    text = json.dumps(notice(crash))
    assert len(text) < 1_500
    assert "secret" not in text


def test_a_command_gets_it_on_stdin_and_in_its_environment(tmp_path):
    assert run(f'cat > {tmp_path}/told; printf %s "$DAIFU_TEXT" > {tmp_path}/text') == []
    told = json.loads((tmp_path / "told").read_text())
    assert (told["unit"], told["line"]) == ("train", 15)
    assert (tmp_path / "text").read_text() == told["text"]


@pytest.mark.parametrize(
    "evil", ["$(touch {})", "`touch {}`", "'; touch {}; '", '"; touch {}; "', "\n touch {}", "x\0y", "\udc80"]
)
def test_the_message_is_never_part_of_the_command_line(evil, tmp_path):
    mark = tmp_path / "mark"
    crash = FakeCrash(exception=ValueError(evil.format(mark)), unit=evil.format(mark))
    assert run(f'echo "$DAIFU_TEXT" $DAIFU_UNIT > {tmp_path}/told', crash) == []
    assert (tmp_path / "told").exists()
    assert not mark.exists()


@pytest.mark.parametrize(
    ("hook", "shown"),
    [
        (lambda told: 1 / 0, "daifu: on_crash failed: ZeroDivisionError: division by zero"),
        (lambda: None, "daifu: on_crash failed: TypeError: "),
        ("echo no such host >&2; exit 3", "daifu: on_crash failed: exit status 3: no such host"),
        ("no-such-command-anywhere", "daifu: on_crash failed: exit status 127: "),
    ],
)
def test_what_goes_wrong_is_one_line(hook, shown):
    (line,) = run(hook)
    assert line.startswith(shown)
    assert len(line.splitlines()) == 1


def test_a_hook_that_hangs_keeps_nothing_waiting():
    release = threading.Event()
    thread = notify(lambda told: release.wait(), FakeCrash(), print)
    assert thread.is_alive()
    assert thread.daemon
    release.set()
    thread.join()


def test_it_keeps_no_crash_alive():
    crash = FakeCrash()
    release, told = threading.Event(), []
    thread = notify(lambda data: (told.append(data), release.wait()), crash, print)
    assert all(isinstance(value, (str, int)) for value in notice(crash).values())
    release.set()
    thread.join()
    assert "ValueError" in told[0]["text"]
