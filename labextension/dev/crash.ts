/** A crash as the kernel describes it. */

import type { Ending, FrameDetail, FrameItem, State, Variable, Word } from '../src/panel/protocol';

export const SOURCE = `def train(model, loader, epochs):
    """Train, and give the losses."""
    losses = []
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        total = 0.0
        for batch, (inputs, targets) in enumerate(loader):
            outputs = model(inputs)  # logits
            loss = nn.functional.cross_entropy(outputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total / (batch + 1))
        print(f"epoch {epoch} loss {losses[-1]:.4f}")
    return losses
`;
const FIRST = 12;
const LINE = 20;

function frame(level: number, fields: Partial<FrameItem>): FrameItem {
  return {
    level,
    kind: 'user',
    function: 'train',
    place: 'cell 4',
    line: LINE,
    source: 'loss = nn.functional.cross_entropy(outputs, targets)',
    vaccinated: false,
    crashed: false,
    ...fields
  };
}

const library = (level: number, name: string, line: number): FrameItem =>
  frame(level, { kind: 'library', function: name, place: 'torch/nn/functional.py', line, source: 'return handle_torch_function(' });

export const frames: FrameItem[] = [
  frame(3, { function: '<cell>', line: 4, source: 'losses = train(model, loader, epochs=10)', vaccinated: true }),
  frame(2, { vaccinated: true, crashed: true }),
  { ...frame(-1, {}), kind: 'folded', count: 2, frames: [library(1, 'cross_entropy', 3494), library(0, '_nll_loss', 2871)] }
];

const ending = (says: string): Ending => ({ enabled: true, says, ask: '' });
const none = (why_not: string): Ending => ({ enabled: false, says: '', why_not });

const endings: Record<Word, Ending> = {
  pass: ending('Runs line 20 again: nn.functional.cross_entropy(outputs, targets). Nothing else is repeated.'),
  surgery: ending('Replaces train for every caller, and goes on at line 20 in the new code.'),
  skip: ending('Leaves line 20 out and goes on at line 21. The name loss keeps its older value: tensor(0.4312, grad_fn=…).'),
  continue: ending('Goes on with the next batch of the loop in line 18.'),
  break: ending('Leaves the loop in line 18 and goes on at line 25.'),
  return: ending('train returns the value to its caller, line 4 of the cell.'),
  abort: ending('Gives the run up: the traceback is shown, and 2 later cells do not run.')
};

export const variables: Variable[] = [
  { name: 'outputs', type: 'Tensor', text: '[64, 10] float32 cuda:0, requires grad', path: ['outputs'], more: false, stats: true },
  { name: 'targets', type: 'Tensor', text: '[64] int64 cuda:0', path: ['targets'], stats: true },
  { name: 'model', type: 'Classifier', text: '3 modules, 101,770 parameters', path: ['model'], more: true },
  { name: 'epoch', type: 'int', text: '3', path: ['epoch'] },
  { name: 'batch', type: 'int', text: '17', path: ['batch'] },
  { name: 'total', type: 'float', text: '6.31480747461319', path: ['total'] },
  { name: 'losses', type: 'list', text: '3 items: [0.8124, 0.4312, 0.3907]', path: ['losses'], more: true },
  { name: 'optimizer', type: 'Adam', text: 'lr 0.001, 1 group', path: ['optimizer'], more: true },
  { name: 'loader', type: 'DataLoader', text: '938 batches of 64', path: ['loader'], more: true },
  { name: 'epochs', type: 'int', text: '10', path: ['epochs'] }
];

export function detail(level: number): FrameDetail {
  const cell = level === 3;
  return {
    level,
    function: cell ? '<cell>' : 'train',
    place: 'cell 4',
    line: cell ? 4 : LINE,
    vaccinated: level >= 2,
    key: `key-${cell}`,
    text: cell ? 'loader = make_loader(64)\nmodel = Classifier().cuda()\n\nlosses = train(model, loader, epochs=10)\n' : SOURCE,
    first_line: cell ? 1 : FIRST,
    mark: cell ? { line: 4, start: 9, end: 40 } : { line: LINE, start: 19, end: 64 },
    values: [
      ['outputs', '[64, 10] float32 cuda:0, requires grad'],
      ['targets', '[63] int64 cuda:0']
    ],
    variables,
    total: variables.length,
    can_edit: level >= 2,
    why_not: level >= 2 ? '' : 'it is a library’s',
    endings: level >= 2 ? endings : { ...endings, continue: none('there is no loop here') }
  };
}

export function crashed(): State {
  return {
    version: 1,
    crash_id: 'dev',
    phase: 'waiting',
    doing: '',
    crash: {
      type: 'ValueError',
      message: 'Expected input batch_size (64) to match target batch_size (63).',
      unit: 'train',
      place: 'cell 4',
      line: LINE,
      statement: 'loss = nn.functional.cross_entropy(outputs, targets)',
      kind: 'statement',
      thread: null,
      since: Date.now() / 1000 - 133,
      in_a_row: 1,
      remarks: []
    },
    progress: [
      { line: 16, header: 'for epoch in range(epochs)', at: [['epoch', '3']] },
      { line: 18, header: 'for batch, (inputs, targets) in enumerate(loader)', at: [['batch', '17']] }
    ],
    frames,
    selected: 2,
    refusal: null,
    drafts: {},
    console: [],
    queued: 0,
    others: [],
    rerun: null,
    sections: [],
    end: null,
    output: { lost: false, items: [] }
  };
}
