/** What happened, where every loop stands, and how long the run has been waiting. */

import { h, replace, setText } from './dom';
import { Seen, type Part } from './part';
import type { Crash, Loop, State } from './protocol';
import type { Session } from './session';

const LONG = 400;

export class Header implements Part {
  readonly node: HTMLElement;
  private readonly title = h('h2', { class: 'jp-daifu-title', daifu: 'title' });
  private readonly place = h('div', { class: 'jp-daifu-place', daifu: 'place' });
  private readonly waiting = h('span', { daifu: 'waiting-time', class: 'jp-daifu-time' });
  private readonly chip = h('span', { class: 'jp-daifu-chip' });
  private readonly remarks = h('ul', { class: 'jp-daifu-remarks', daifu: 'remarks' });
  private readonly timer: number;
  private readonly seen = new Seen();
  private whole = false;

  constructor(private readonly session: Session) {
    const right = h('div', { class: 'jp-daifu-status' }, this.chip, this.waiting);
    const top = h('div', { class: 'jp-daifu-top' }, this.title, right);
    this.node = h('header', { class: 'jp-daifu-header' }, top, this.place, this.remarks);
    this.timer = window.setInterval(() => this.tick(), 1_000);
  }

  update(): void {
    const { state, phase } = this.session;
    if (!state) {
      setText(this.title, 'Reading the crash…');
      return;
    }
    setText(this.chip, phase);
    this.chip.title = state.doing;
    if (this.seen.isNew(state.crash, state.progress, state.queued, state.others, this.whole)) {
      replace(this.title, ...this.titleOf(state.crash));
      replace(this.place, ...placeOf(state.crash, state.progress));
      const remarks = remarksOf(state);
      replace(this.remarks, ...remarks.map(remark => h('li', {}, remark)));
      this.remarks.hidden = remarks.length === 0;
    }
    this.tick();
  }

  dispose(): void {
    window.clearInterval(this.timer);
  }

  private titleOf({ type, message }: Crash): (HTMLElement | string)[] {
    const text = message.length > LONG && !this.whole ? `${message.slice(0, LONG)}…` : message;
    const name = h('span', { class: 'jp-daifu-type' }, type);
    return message ? [name, ': ', h('span', { class: 'jp-daifu-message' }, text), ...this.toggle(message)] : [name];
  }

  private toggle(message: string): HTMLElement[] {
    const press = (): void => {
      this.whole = !this.whole;
      this.update();
    };
    const label = this.whole ? 'less' : 'whole message';
    const props = { class: 'jp-daifu-button jp-mod-link', data: { key: 'whole' }, on: { click: press } };
    return message.length > LONG ? [h('button', props, label)] : [];
  }

  private tick(): void {
    const { state, phase } = this.session;
    const waits = state && (phase === 'waiting' || phase === 'working');
    setText(this.waiting, waits ? duration(Date.now() / 1000 - state.crash.since) : '');
  }
}

function placeOf({ unit, place, line, thread }: Crash, progress: Loop[]): HTMLElement[] {
  const where = [unit, place && place !== unit ? `in ${place}` : '', `line ${line}`].filter(Boolean).join(', ');
  const loops = progress.map(({ header, at }) => {
    const now = at.map(([name, text]) => `${name} ${text}`).join(', ');
    const title = h('span', { class: 'jp-daifu-muted' }, now ? ` ${header}` : header);
    return h('span', { class: 'jp-daifu-loop', daifu: 'loop' }, now, title);
  });
  const items = [h('span', {}, where), thread ? h('span', {}, `thread ${thread}`) : null, ...loops];
  return items.filter(item => item !== null);
}

function remarksOf({ crash, queued, others }: State): string[] {
  const cells = queued === 1 ? '1 later cell waits and runs' : `${queued} later cells wait and run`;
  return [
    ...(crash.remarks ?? []),
    ...others.map(({ text }) => `Another crash waits: ${text}`),
    ...(queued ? [`${cells} in order afterwards`] : [])
  ];
}

/** 4 s, 2 min 13 s, 3 h 5 min */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  if (hours) {
    return `${hours} h ${minutes} min`;
  }
  return minutes ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}
