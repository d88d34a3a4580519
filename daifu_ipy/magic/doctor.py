"""``%daifu doctor``: is everything here as recovery needs it, and what to do where it is not."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

from IPython.core.magic_arguments import magic_arguments, parse_argstring

from daifu_ipy.engine.managers import manager_by_api
from daifu_ipy.engine.selftest import patches_work
from daifu_ipy.frontends.choose import ON_CRASH, Environment
from daifu_ipy.frontends.hello import NO_ANSWER, hello
from daifu_ipy.frontends.kernel import Kernel
from daifu_ipy.frontends.panel import SCRIPT
from daifu_ipy.magic.answers import failures
from daifu_ipy.magic.protect import listed
from daifu_ipy.magic.rehearsal import rehearse

if TYPE_CHECKING:
    from daifu_ipy.magic.running import Runner

MARKS = {"fine": "", "know": "note: ", "do": "TO DO: "}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: it is fine, or good to know, or something is to be done about it."""

    what: str
    text: str
    kind: Literal["fine", "know", "do"] = "fine"


@magic_arguments("daifu doctor")
def doctor(runner: Runner, line: str) -> None:
    """Check this installation and this notebook, and say what to do.

    A small function is protected, crashed and recovered for it, in a thread of its own. Nothing of yours is touched,
    and nothing is imported.
    """
    parse_argstring(doctor, line)
    found = list(findings(runner))
    for one in found:
        print(f"{one.what:<15} {MARKS[one.kind]}{one.text}")
    count = sum(one.kind == "do" for one in found)
    print("daifu: everything fine" if count == 0 else f"daifu: {count} thing{'s' * (count > 1)} to do")


def findings(runner: Runner) -> Iterator[Finding]:
    """All that is looked at."""
    yield _recovery()
    yield _python()
    yield from _columns()
    yield Finding("IPython", _versions("ipython", "ipykernel"))
    yield from _answers(runner)
    yield from _tracers()
    yield from _others(runner.shell)
    yield from _reloading(runner.shell)
    yield from _torch(runner.shell.user_ns)
    yield from _panel()
    yield from (Finding("internal error", f"{text}: please report it", "do") for text in failures())


def _recovery() -> Finding:
    wrong = rehearse()
    if wrong is None:
        return Finding("recovery", "a small function was crashed and recovered; its result is that of a plain run")
    return Finding("recovery", f"a small function could not be recovered: {wrong}. Please report it", "do")


def _python() -> Finding:
    version = f"{platform.python_implementation()} {platform.python_version()}"
    if patches_work():
        return Finding("Python", f"{version}; the engine knows its instructions")
    return Finding(
        "Python", f"{version}: helpers stand in for its instructions: slower, and with the same meaning", "know"
    )


def _columns() -> Iterator[Finding]:
    code = compile("x = 1", "<doctor>", "exec")
    if all(column is None for _, _, column, _ in code.co_positions()):
        yield Finding(
            "columns",
            "this Python keeps no columns, so that nothing can be resumed: start it without -X no_debug_ranges, and "
            "without PYTHONNODEBUGRANGES",
            "do",
        )


def _versions(*names: str) -> str:
    found = []
    for name in names:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def _answers(runner: Runner) -> Iterator[Finding]:
    text = f"a crash now {runner.manager.outlook()}"
    if manager_by_api() is not None:
        yield Finding("answers", f"{text}, not to you", "know")
        return
    cell, here = runner.manager.now(), Environment.detect()
    answered = not ON_CRASH[cell.on_crash] or cell.rules.rules or runner.manager.replay is not None
    if here.can_prompt or here.has_panel or answered:
        yield Finding("answers", text)
    else:
        why = "this kernel's request does not allow to ask (stdin)" if here.in_kernel else "stdin is no terminal"
        yield Finding("answers", f"{text}, since {why}. Rules answer without a person: c.Daifu.rules, --rules", "do")


def _panel() -> Iterator[Finding]:
    kernel = Kernel.here()
    if kernel is None:
        yield Finding("panel", "none here: it needs a Jupyter kernel")
    elif importlib.util.find_spec("anywidget") is None:
        yield Finding("panel", "this kernel's environment lacks anywidget: %pip install anywidget, and restart", "do")
    elif not SCRIPT.is_file():
        yield Finding("panel", "its page part was not built: npm ci && npm run build in labextension", "do")
    elif kernel.problem is not None:
        yield Finding("panel", f"{kernel.problem}; the prompt answers", "do")
    elif hello.problem is not None:
        yield Finding("panel", hello.problem, "do")
    elif hello.answered:
        yield Finding("panel", f"{_versions('anywidget')}; a page has shown that it can show it")
    elif not hello.was_asked:
        yield Finding("panel", f"{_versions('anywidget')}; a page is asked when a protected cell starts")
    else:
        yield Finding("panel", NO_ANSWER, "do")


def _tracers() -> Iterator[Finding]:
    tools = [name for name in map(_monitoring, range(6)) if name]
    tracer = sys.gettrace()
    if tracer is not None:
        tools.append(getattr(tracer, "__module__", None) or type(tracer).__module__)
    if tools:
        text = f"{listed(tools)} follows every line: protected code is traced as the lines that it has, and is slower"
        yield Finding("debugger", text, "know")
    debugpy = sys.modules.get("debugpy")
    if debugpy is not None and _is_connected(debugpy):
        text = "a debugger is connected (debugpy): it may stop at an exception before it is a crash"
        yield Finding("debugger", text, "know")


def _monitoring(tool: int) -> str | None:
    monitoring = getattr(sys, "monitoring", None)  # since Python 3.12
    return None if monitoring is None else monitoring.get_tool(tool)


def _is_connected(debugpy: Any) -> bool:
    try:
        return bool(debugpy.is_client_connected())
    except Exception:
        return False


def _others(shell: Any) -> Iterator[Finding]:
    """What else has put itself between IPython and the cells."""
    replaced = [name for name in ("run_cell", "run_cell_async", "run_code", "showtraceback") if name in vars(shell)]
    if replaced:
        yield Finding(
            "other tools", f"{listed(replaced)} of this shell was replaced; if a cell is not protected: why?", "know"
        )
    trees = [_origin(one) for one in shell.ast_transformers if not _is_ours(one)]
    if trees:
        yield Finding("other tools", f"{listed(trees)} rewrites cells before they are protected", "know")
    if shell.custom_exceptions:
        names = listed([kind.__name__ for kind in shell.custom_exceptions])
        yield Finding("other tools", f"set_custom_exc handles {names}; it sees what was aborted, no crash", "know")
    if not _is_ours(sys.excepthook) and type(sys.excepthook).__name__ != "builtin_function_or_method":
        if not str(getattr(sys.excepthook, "__module__", "")).startswith("IPython"):
            text = f"sys.excepthook is {_origin(sys.excepthook)}; it sees what was aborted, no crash"
            yield Finding("other tools", text, "know")


def _origin(value: Any) -> str:
    owner = getattr(value, "__self__", value)
    kind = owner if hasattr(owner, "__qualname__") else type(owner)
    return f"{kind.__module__}.{kind.__qualname__}"


def _is_ours(value: Any) -> bool:
    return _origin(value).startswith("daifu_ipy.")


def _reloading(shell: Any) -> Iterator[Finding]:
    if (
        "autoreload" in shell.extension_manager.loaded
        or "IPython.extensions.autoreload" in shell.extension_manager.loaded
    ):
        yield Finding("autoreload", "loaded; what it loads again is protected again, before the next cell")


def _torch(names: dict[str, Any]) -> Iterator[Finding]:
    torch = sys.modules.get("torch")
    if torch is None:
        yield Finding("torch", "not imported")
        return
    yield Finding("torch", f"{getattr(torch, '__version__', '')}, imported")
    compiled = [name for name, value in list(names.items()) if not name.startswith("_") and _is_compiled(value)]
    if compiled:
        text = f"{listed(compiled)}: made by torch.compile; a crash inside is one of the statement that calls it"
        yield Finding("torch.compile", text, "know")
    loaders = [name for name, value in list(names.items()) if not name.startswith("_") and _has_workers(value)]
    if loaders:
        text = (
            f"{listed(loaders)}: an exception in a worker process is not a crash there, but of the loop that gets it; "
            "with num_workers=0 it is recovered in the Dataset"
        )
        yield Finding("DataLoader", text, "know")


def _is_compiled(value: Any) -> bool:
    kind = type(value)
    if (kind.__module__, kind.__name__) == ("torch._dynamo.eval_frame", "OptimizedModule"):
        return True
    return kind.__name__ == "function" and "_torchdynamo_orig_callable" in vars(value)


def _has_workers(value: Any) -> bool:
    is_loader = any(
        (c.__module__, c.__name__) == ("torch.utils.data.dataloader", "DataLoader") for c in type(value).__mro__
    )
    return is_loader and bool(vars(value).get("num_workers"))
