"""Compiling beside the program: what it has set stays."""

from __future__ import annotations

import threading
import warnings

from daifu_ipy.engine.compiling import quietly


def test_threads_that_compile_at_once_leave_warnings_as_they_were():
    before = warnings.showwarning
    inside, second_inside, first_left = threading.Event(), threading.Event(), threading.Event()

    def first():
        with quietly():
            inside.set()
            second_inside.wait(0.1)  # for ever, where they are let in one after the other
        first_left.set()

    def second():
        inside.wait(10)
        with quietly():
            second_inside.set()
            first_left.wait(10)

    threads = [threading.Thread(target=call) for call in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.showwarning is before
