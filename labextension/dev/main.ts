/** Shows the state that the address names. */

import type { State } from '../src/panel/protocol';
import panel from '../src/panel/index';
import { crashed } from './crash';
import { choices, FakeKernel } from './kernel';

const crash = crashed();
const SCRIPT = '<script>window.attacked = 1</script>';
const IMAGE = '<img src=x onerror="window.attacked = 2">';

const states: Record<string, Partial<State>> = {
  crash: {},
  working: { phase: 'working', doing: 'an action runs (the stop button stops it)' },
  refused: { refusal: { text: 'train would lose its parameter epochs, which its callers give', line: 12, key: 'key-false' } },
  unplaced: { refusal: { text: 'no loop can be left here', line: null, key: null } },
  remarks: {
    queued: 2,
    others: [{ crash_id: 'b', text: 'KeyError in thread loader-1, line 8 of cell 2' }],
    crash: { ...crash.crash, in_a_row: 3, thread: 'Thread-3', remarks: ['The third crash in a row at this statement.'] }
  },
  rerun: {
    rerun: {
      msg_id: 'm',
      changed: true,
      diff: ['--- cell 4, now', '+++ cell 4, new', '@@ -4 +4 @@', '-losses = train(model, loader, epochs=10)', '+losses = train(model, loader, epochs=12)'],
      hours: 'the work of 3 h 12 min',
      preview: { line: 4, statement: 'losses = train(…)', choices }
    }
  },
  sections: {
    sections: [
      {
        name: 'memory',
        title: 'GPU memory',
        open: true,
        blocks: [
          { text: 'The largest tensors that the frames hold.' },
          { head: ['name', 'size'], rows: [['outputs', '2.6 kB'], ['model', '407 kB']] },
          { field: 'batch', label: 'Batch size', value: '32' },
          { button: 'Free unused memory', command: 'free' },
          { button: 'Split the batch', command: 'split', enabled: false, why_not: 'it has one item' }
        ]
      }
    ]
  },
  ended: { phase: 'recovered', end: { text: 'Recovered ValueError at line 20 by surgery, epoch 3, resumed in 4 ms', outcome: 'recovered' } },
  aborted: { phase: 'aborted', end: { text: 'Aborted ValueError at line 20, epoch 3', outcome: 'aborted' } },
  output: {
    phase: 'recovered',
    end: { text: 'Recovered ValueError at line 20 by pass, epoch 3, resumed in 4 ms', outcome: 'recovered' },
    output: { lost: true, items: [{ stream: 'stdout', text: 'epoch 3 loss 0.3811\n' }, { stream: 'stdout', text: 'epoch 4 loss 0.3702\n' }] }
  },
  long: {
    crash: {
      ...crash.crash,
      type: 'RuntimeError',
      message: `CUDA error: device-side assert triggered\n${'x'.repeat(3000)}`,
      place: '/home/user/a/very/long/path/to/a/project/that/nobody/wants/to/read/training.py'
    },
    frames: Array.from({ length: 200 }, (_, at) => ({ ...crash.frames[1], level: 199 - at, crashed: at === 199, line: 12 + at })) as State['frames'],
    selected: 0
  },
  hostile: {
    crash: { ...crash.crash, message: IMAGE, unit: SCRIPT },
    progress: [{ line: 1, header: SCRIPT, at: [[IMAGE, SCRIPT]] }],
    console: [{ level: 2, code: IMAGE, stdout: SCRIPT, value: IMAGE, error: SCRIPT, note: IMAGE, rich: [{ 'text/html': SCRIPT + IMAGE }] }]
  }
};

const query = new URLSearchParams(location.search);
const name = query.get('state') ?? 'crash';
const theme = document.createElement('link');
theme.rel = 'stylesheet';
theme.href = `${query.get('theme') ?? 'light'}.css`;
document.head.append(theme);

const kernel = new FakeKernel({ ...crash, ...states[name] });
kernel.many = name === 'long' ? 2000 : 0;
Object.assign(window, { kernel });
panel.initialize({ model: kernel });
const cell = document.getElementById('cell');
const views: (() => void)[] = [];

function show(): void {
  const place = document.createElement('div');
  cell?.append(place);
  views.push(panel.render({ model: kernel, el: place }));
}

for (let view = 0; view < Number(query.get('views') ?? 1); view++) {
  show();
}
Object.assign(window, { rerender: show, unrender: () => views.splice(0).forEach(dispose => dispose()) });
