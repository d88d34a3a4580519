/** One view of a crash: under its cell, or in the dock. */

import { Console } from './console';
import { append, h, replace, setAria } from './dom';
import { Ended } from './ended';
import { Endings } from './endings';
import { Frames } from './frames';
import { Header } from './header';
import { keepKeys } from './keys';
import { Notices, QuestionBar } from './notices';
import type { Part } from './part';
import { Rerun } from './rerun';
import { Review } from './review';
import { Sections } from './sections';
import type { Session } from './session';
import { Disposables } from './signal';
import { Source } from './source';
import { reason } from './tree';
import { Variables } from './variables';
import { Save, Versions } from './versions';

export class View {
  readonly node: HTMLElement;
  private readonly body: HTMLElement;
  private readonly header: Header;
  private readonly source: Source;
  private readonly console: Console;
  private readonly endings: Endings;
  private readonly parts: Part[];
  private readonly polite = h('div', { class: 'jp-daifu-heard', aria: { live: 'polite' } });
  private readonly urgent = h('div', { class: 'jp-daifu-heard', aria: { live: 'assertive' } });
  private readonly faults = h('div');
  private readonly disposables = new Disposables();
  private due = false;

  constructor(private readonly session: Session) {
    const toButtons = (): void => this.endings.focus();
    const operate = (): void => this.operate();
    this.header = new Header(session);
    this.source = new Source(session, toButtons, operate);
    this.console = new Console(session, toButtons);
    this.endings = new Endings(session, {
      toConsole: () => this.console.focus(),
      toEditor: () => this.source.focus(),
      operate
    });
    const notices = new Notices(session);
    const rerun = new Rerun(session);
    const frames = new Frames(session);
    const review = new Review(session, operate, () => this.source.focus());
    const variables = new Variables(session);
    const question = new QuestionBar(session, 'decide', toButtons);
    const again = new QuestionBar(session, 'rerun', () => rerun.focus());
    const sections = new Sections(session);
    const foot = h('footer', { class: 'jp-daifu-foot' });
    const [versions, save, ended] = [new Versions(session), new Save(session), new Ended(session)];
    append(foot, [versions.node, save.node]);
    const code = h('div', { class: 'jp-daifu-code' }, this.source.node, review.node);
    const upper = h('div', { class: 'jp-daifu-columns2 jp-mod-upper' }, frames.node, code);
    const lower = h('div', { class: 'jp-daifu-columns2 jp-mod-lower' }, variables.node, this.console.node);
    this.body = h('div', { class: 'jp-daifu-body' });
    append(this.body, [rerun.node, again.node, upper, lower, question.node, this.endings.node, sections.node, foot]);
    this.node = h('section', {
      class: 'jp-daifu-panel',
      daifu: 'root',
      tabIndex: -1,
      aria: { label: 'Crash' },
      data: { crash: session.crashId }
    });
    append(this.node, [this.header.node, this.faults, notices.node, this.body, ended.node, this.polite, this.urgent]);
    this.parts = [this.header, notices, rerun, frames, this.source, review, variables, this.console];
    this.parts.push(question, again, this.endings, sections, versions, save, ended);
    this.disposables.add(
      keepKeys(this.node),
      session.changed.connect(() => this.later()),
      session.said.connect(({ text, urgent }) => this.say(text, urgent))
    );
    this.update();
  }

  dispose(): void {
    this.disposables.dispose();
    this.parts.forEach(part => part.dispose?.());
    this.node.remove();
  }

  /** The crash, for who joins late. */
  announce(): void {
    const { state, phase } = this.session;
    if (state && phase === 'waiting') {
      const { type, message, line } = state.crash;
      this.say(`${type}: ${message}, at line ${line}. The run waits for a repair.`, true);
    }
  }

  /** Once for many changes. A hidden page draws no frames, so no animation frame is waited for. */
  private later(): void {
    if (!this.due) {
      this.due = true;
      queueMicrotask(() => {
        this.due = false;
        this.update();
      });
    }
  }

  private update(): void {
    const { phase, isOver, state } = this.session;
    const folds = isOver && !this.body.hidden && this.isSeen;
    this.node.dataset['phase'] = phase;
    setAria(this.node, 'busy', phase === 'working' || null);
    this.node.dataset['outcome'] = state?.end?.outcome ?? '';
    this.header.node.hidden = isOver;
    this.body.hidden = isOver || !state;
    this.parts.forEach(part => this.updated(part));
    if (folds) {
      this.node.scrollIntoView({ block: 'nearest' }); // what was below it has moved up, past what is in view
    }
  }

  private get isSeen(): boolean {
    const { top, bottom, height } = this.node.getBoundingClientRect();
    return height > 0 && bottom > 0 && top < window.innerHeight;
  }

  /** A part that fails is said to fail; the others, and the buttons, go on. */
  private updated(part: Part): void {
    try {
      part.update();
    } catch (error) {
      const text = `A part of the panel failed: ${reason(error)}`;
      replace(this.faults, h('div', { class: 'jp-daifu-notice', daifu: 'notice-fault' }, text));
    }
  }

  /** First the review; asked again, its text is applied. */
  private operate(): void {
    const { surgery, asking, level, whyNot, detail } = this.session;
    const { decision } = surgery;
    if (whyNot) {
      this.say(whyNot, true);
    } else if (decision && decision.source === surgery.source) {
      const repair = { word: 'surgery', ...decision };
      asking.decide('decide', { level, key: decision.key, repair }, 'Surgery', detail?.endings.surgery?.ask);
    } else {
      void surgery.preview();
    }
  }

  private say(text: string, urgent: boolean): void {
    replace(urgent ? this.urgent : this.polite, h('span', {}, text));
  }
}
