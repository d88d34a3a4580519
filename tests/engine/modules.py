"""Modules of vaccinated functions for tests with more than one unit, and managers that answer as they are told."""

from __future__ import annotations

import itertools
import linecache
import threading
import types
from unittest import mock

import daifu_ipy
from daifu_ipy.engine.vaccinate import functions_in

numbers = itertools.count(1)


class Fault(Exception):
    """What ``bad`` raises."""


class Cm:
    """A context manager that logs."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __enter__(self):
        self.module.log(f"enter {self.name}")
        return self.name

    def __exit__(self, kind, error, trace):
        self.module.log(f"exit {self.name} {kind and kind.__name__}")

    async def __aenter__(self):
        return self.__enter__()

    async def __aexit__(self, *error):
        self.__exit__(*error)


class Answers:
    """A manager that gives these answers, one for each time it is asked; a callable looks at the crash first."""

    def __init__(self, *answers):
        self.left = list(answers)
        self.asked = []
        self.refusals = []

    def __call__(self, crash):
        self.asked.append((type(crash.exception).__name__, crash.restart.unit, crash.restart.statement.strip()))
        if crash.refusal is not None:
            self.refusals.append(crash.refusal)
        if not self.left:
            return None
        answer = self.left.pop(0)
        return answer(crash) if isinstance(answer, types.FunctionType) else answer


class Module(types.ModuleType):
    """A module made from `source`; its functions and methods, but those named in `plain`, are vaccinated.

    ``bad(x)`` raises `Fault` in its first `faults` calls, then returns x. ``log(x)`` logs and returns x; ``lines``
    is the log.
    """

    def __init__(self, source, *, faults=1, plain=(), vaccinated=True, **names):
        super().__init__(f"module_{next(numbers)}")
        self.lines, self.faults, self.Fault = [], faults, Fault
        vars(self).update(names, log=self.log, bad=self.bad, cm=self.cm)
        self.file = f"<{self.__name__}>"
        linecache.cache[self.file] = (len(source), None, source.splitlines(keepends=True), self.file)
        exec(compile(source, self.file, "exec", dont_inherit=True), vars(self))
        if vaccinated:
            for name, value in list(vars(self).items()):
                if getattr(value, "__module__", None) == self.__name__ and name not in plain:
                    for function in functions_in(value):
                        if function.__code__.co_filename == self.file:
                            daifu_ipy.vaccinate(function, strict=True)

    def log(self, x):
        self.lines.append(x)
        return x

    def bad(self, x=None):
        if self.faults > 0:
            self.faults -= 1
            raise Fault(x)
        return x

    def cm(self, name):
        return Cm(self, name)


def finish(value):
    """Run a generator to its end as a list, a coroutine to its result."""
    if hasattr(value, "__next__"):
        return list(value)
    if hasattr(value, "cr_code"):
        try:
            while True:
                value.send(None)
        except StopIteration as stop:
            return stop.value
    return value


def run(module, answers, call="main()"):
    """The value of `call` with repairs by `answers`."""
    code = compile(call, "<call>", "eval", dont_inherit=True)
    with daifu_ipy.repair_with(answers):
        return finish(eval(code, vars(module)))


def escaping(call):
    """What a call raises, or None. A thread's runner is no handler of the program; a ``try`` here would be one."""
    found = [None]
    with mock.patch.object(threading, "excepthook", lambda args: found.append(args.exc_value)):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    return found.pop()


def raised(module, answers, call="main()"):
    """What `call` raises with repairs by `answers`."""
    return escaping(lambda: run(module, answers, call))


def expect_repaired(source, *answers, like, call="main()", faults=1, plain=(), asked=None):
    """Check that `source`, crashed and repaired, does what `like` does plainly with the same faults.

    All answers must be used; `asked` is how often the manager is asked (by default once for each answer).
    """
    example = Module(like, faults=faults, vaccinated=False)
    expected = finish(eval(call, vars(example)))
    module, manager = Module(source, faults=faults, plain=plain), Answers(*answers)
    result = run(module, manager, call)
    assert module.lines == example.lines
    assert result == expected
    assert not manager.left
    assert len(manager.asked) == (len(answers) if asked is None else asked), manager.asked
    return module, manager


__all__ = ["Answers", "Fault", "Module", "escaping", "expect_repaired", "raised", "run"]
