"""RepairPdb: Pdb's commands, and those that repair a crash. Only a repairing command decides."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType

from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.repairs import Abort, Break, Continue, Ending, Pass, Repair, Return, Skip, Surgery
from daifu_ipy.frontends.announce import announce, remarks
from daifu_ipy.frontends.drafts import Draft, shown_line
from daifu_ipy.frontends.looking import LookingPdb
from daifu_ipy.frontends.operating import Surgeon
from daifu_ipy.frontends.terminal import CannotAsk, is_terminal
from daifu_ipy.frontends.typed import problem_of
from daifu_ipy.repair.rules import SameHere
from daifu_ipy.repair.stack import format_stack
from daifu_ipy.repair.summary import one_line

PROMPT = "daifu> "
ABORT_QUESTION = "abort? the run's state is lost [y/N] "
SURE = "do it? [y/N] "

ENDINGS = ("pass", "action", "surgery", "skip", "continue", "break", "return", "abort")
OTHERS = ("same", "preview", "save", "stack", "vars", "history", "help")


@dataclass
class Memory:
    """What is remembered from one question about a crash to the next, after a refusal: text and code only."""

    sent: Repair | None = None
    drafts: dict[CodeType, Draft] = field(default_factory=dict)
    sent_draft: Draft | None = None


class RepairPdb(LookingPdb):
    """Asks what to do about one crash.

    Parameters
    ----------
    crash
        The crash.
    memory
        What is remembered of a question about it before.
    ask
        Called with the prompt's text; gives a line, or raises `EOFError` or `KeyboardInterrupt`. By default the
        terminal's own way.
    """

    def __init__(self, crash: Crash, memory: Memory, ask: Callable[[str], str] | None = None) -> None:
        super().__init__(crash, ask)
        self.memory = memory
        self.answer: Repair | SameHere | None = None

    def run_session(self) -> Repair | SameHere:
        """Ask until there is an answer."""
        self._introduce()
        while self.answer is None:
            try:
                self._turn()
            except EOFError:
                self.message("")
                self._ask_abort()
        return self.answer

    def _turn(self) -> None:
        if self._is_decided_elsewhere():
            return
        try:
            line = self.cmdqueue.pop(0) if self.cmdqueue else self.ask(PROMPT)
        except KeyboardInterrupt:
            line = None
        if self._is_decided_elsewhere():
            return
        if line is None:
            self._ask_abort()
        else:
            self._obey(line)

    def _is_decided_elsewhere(self) -> bool:
        """Whether somebody else has decided; that is the answer then."""
        decision = self.crash.decision
        if decision is None:
            return False
        self.message(f"decided elsewhere: {decision.word}")
        self.answer = decision
        return True

    def _obey(self, line: str) -> None:
        try:
            self.obey(line)
        except KeyboardInterrupt:
            self.cmdqueue.clear()
            self.message("(interrupted; the run waits)")
        except (EOFError, CannotAsk):
            raise
        except Exception as error:  # a fault of a command's own must not cost the run
            self.error(f"{type(error).__name__}: {one_line(str(error), 200)}")

    def _introduce(self) -> None:
        if self.crash.refusal is not None:
            self._say_refusal(self.crash.refusal)
            return
        self.message(format_stack(self.crash))
        for line in remarks(self.crash):
            self.message(line)
        self.message(f"The run waits. {', '.join(ENDINGS)}; or Python (help lists the rest).")

    # questions

    def confirms(self, question: str) -> bool:
        """Ask; everything but a yes is a no."""
        try:
            return self.ask(question).strip().lower() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False

    def _ask_abort(self) -> None:
        """Ask whether to abort; the end of input is a yes, since nobody is there to say no; Ctrl-C is a no."""
        try:
            sure = self.ask(ABORT_QUESTION).strip().lower() in ("y", "yes")
        except EOFError:
            sure = True
        except KeyboardInterrupt:
            sure = False
        if sure:
            self.answer = Repair(then=Abort())

    # endings

    def decide(self, then: Ending, *, sure: bool = True) -> None:
        """Say what an ending will do, and answer with it."""
        selected = self.levels.selected.unit
        unit = selected or 0
        self.message(announce(self.crash, then, unit))
        elsewhere = unit > 0 or (selected is None and not isinstance(then, (Pass, Surgery, Abort)))
        if (elsewhere or not sure) and not self.confirms(SURE):
            return
        repair = Repair(then=then, frame=unit)
        self._send(repair, repair)

    def _send(self, repair: Repair, answer: Repair | SameHere) -> None:
        """Answer, unless the repair was refused just now and the user thinks better of it."""
        if repair == self.memory.sent and not isinstance(repair.then, Abort):
            self.message("this was refused; refused again, it would abort the run")
            if not self.confirms(SURE):
                return
        self.memory.sent, self.answer = repair, answer

    def _end(self, arg: str, then: Ending, *, sure: bool = True) -> None:
        word = Repair(then=then).word
        if arg:
            self.error(f"{word} takes nothing after it, so nothing was done")
        else:
            self.decide(then, sure=sure)

    def do_pass(self, arg: str) -> None:
        """pass: run the crashed statement again."""
        self._end(arg, Pass())

    def do_skip(self, arg: str) -> None:
        """skip: leave the crashed statement out."""
        self._end(arg, Skip())

    def do_continue(self, arg: str) -> None:
        """continue: go on with the next turn of the loop (asks first: in Pdb it means something else)."""
        self._end(arg, Continue(), sure=False)

    def do_break(self, arg: str, temporary: object = 0) -> None:
        """break: go on after the loop (asks first: in Pdb it means something else)."""
        self._end(arg, Break(), sure=False)

    def do_return(self, arg: str) -> None:
        """return EXPR: leave the function with the value of EXPR (alone, it asks: Pdb means something else by it)."""
        problem = problem_of(arg or "None", "eval")
        if problem is not None:
            self.error(f"return EXPRESSION: {problem}")
        else:
            self.decide(Return(arg or "None"), sure=bool(arg))

    def do_abort(self, arg: str) -> None:
        """abort: let the exception go on; the run ends."""
        self._end(arg, Abort())

    def do_quit(self, arg: str) -> None:
        """q(uit), exit, c(ont), Ctrl-D, Ctrl-C: decide nothing; ask whether to abort."""
        self._ask_abort()

    do_q = do_exit = do_EOF = do_quit

    def do_cont(self, arg: str) -> None:
        """c(ont): decides nothing; asks."""
        self.message(
            "c decides nothing: pass runs the statement again, continue goes on with the next turn of the loop"
        )
        self._ask_abort()

    do_c = do_cont

    def do_same(self, arg: str) -> None:
        """same N REPAIR: answer so here, and the next times at this place, N times in all (same 5 skip)."""
        from daifu_ipy.repair.rule_text import RuleError, parse_repair

        if self.levels.selected.unit:
            self.error("same is for the crashed function: go down to it first")
            return
        times, _, text = arg.partition(" ")
        if not times.isdecimal() or int(times) == 0 or not text.strip():
            self.error("same N REPAIR: same 5 skip, or same 5 action 'x = 0' then pass")
            return
        try:
            repair = parse_repair(text)
        except RuleError as error:
            self.error(str(error))
            return
        self.message(announce(self.crash, repair.then) + f"; and so up to {times} times at this place")
        self._send(repair, SameHere(repair, int(times)))

    # surgery

    def _surgeon(self) -> Surgeon:
        can_edit = self._ask is None and is_terminal()
        level, unit = self.levels.selected, self.levels.unit
        return Surgeon(self.crash, level, unit, self.ask, self.read_lines, self.message, can_edit=can_edit)

    def do_surgery(self, arg: str) -> None:
        """surgery [FILE]: replace code by FILE's text, or by what you write now, and go on in it."""
        level = self.levels.selected
        draft = self.memory.drafts.setdefault(level.frame.f_code, Draft(level.name))
        then = self._surgeon().operate(arg, draft)
        if then is not None:
            self.memory.sent_draft = draft
            self.decide(then)

    def do_preview(self, arg: str) -> None:
        """preview FILE: show what a surgery with FILE's text would do."""
        if arg:
            self._surgeon().preview(arg)
        else:
            self.error("preview FILE: the file holds the new text")

    def _say_refusal(self, reason: str) -> None:
        self.message(f"refused: {reason}")
        sent, draft = self.memory.sent, self.memory.sent_draft
        if draft is not None and sent is not None and isinstance(sent.then, Surgery):
            shown = shown_line(reason, sent.then.source)
            where = f"surgery in {draft.name}" if draft.name != self.levels.selected.name else "surgery"
            self.message(f"{shown}\n" * (shown is not None) + f"your text is kept: {where} opens it again")

    # the rest

    def do_action(self, arg: str) -> None:
        """action [CODE]: run CODE in the selected frame; without CODE, lines up to a blank one."""
        code = self.read_block(arg) if arg else self.read_lines("")
        if code:
            self.act(code)

    def do_save(self, arg: str) -> None:
        """save [PATH]: save the state of models and optimizers first."""
        from daifu_ipy.repair.saving import save_first

        self.message(str(save_first(self.crash, arg or None)))

    def do_history(self, arg: str) -> None:
        """history: show what crashed before, and how it was repaired."""
        from daifu_ipy.repair.history import history

        self.message(str(history))

    def do_help(self, arg: str) -> None:
        """help [COMMAND]: show the commands, or one of them."""
        if arg:
            super().do_help(arg)
            return
        for word in (*ENDINGS, *OTHERS):
            self.message(inspect.getdoc(getattr(self, f"do_{word}")) or word)
        self.message(
            "Pdb's: w u d l ll a p pp whatis source display interact alias, !PYTHON, NAME?; ;; between commands"
        )
        self.message("anything else is Python, and runs in the selected frame: assignments stick")

    do_h = do_help

    def let_go(self) -> None:
        """Keep nothing of the frames."""
        super().let_go()
        del self.crash
