// The runner of `npm run check`: chains of steps side by side.

import assert from 'node:assert/strict';
import { test } from 'node:test';

interface Step {
  readonly name: string;
  readonly chain?: string;
  readonly needs?: () => Promise<string | undefined>;
  readonly check: () => Promise<{ status: number; output: string }>;
}

const { runSteps }: { runSteps: (steps: readonly Step[], wanted?: string[]) => Promise<number> } =
  await import(new URL('../../../scripts/lib/steps.mjs', import.meta.url).href);

const ok = { status: 0, output: '' };
const passes = (order: string[], name: string, chain: string): Step => ({
  name,
  chain,
  check: async () => {
    order.push(name);
    return ok;
  },
});

/** Collects what is printed. */
function printed(t: { mock: { method: typeof test.mock.method } }): string[] {
  const lines: string[] = [];
  t.mock.method(console, 'log', (line: string) => lines.push(line));
  t.mock.method(console, 'error', (line: string) => lines.push(line));
  return lines;
}

test('steps of one chain follow each other, and chains run side by side', async (t) => {
  printed(t);
  const order: string[] = [];
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const waits: Step = { name: 'waits', chain: 'a', check: () => opened.then(() => ok) };
  const opens: Step = {
    name: 'opens',
    chain: 'b',
    check: async () => {
      order.push('opens');
      open();
      return ok;
    },
  };
  assert.equal(await runSteps([waits, passes(order, 'after', 'a'), opens]), 0);
  assert.deepEqual(order, ['opens', 'after']);
});

test('a step that throws is a failure with its error, and all others run', async (t) => {
  const lines = printed(t);
  const order: string[] = [];
  const throws = async (): Promise<never> => {
    throw new Error('broken check');
  };
  const steps: Step[] = [
    { name: 'throws', chain: 'a', check: throws },
    passes(order, 'next', 'a'),
    { name: 'needs', chain: 'b', needs: throws, check: async () => ok },
    passes(order, 'other', 'b'),
    { name: 'missing', chain: 'b', needs: async () => 'no tool', check: throws },
  ];
  assert.equal(await runSteps(steps), 2);
  assert.deepEqual(order.sort(), ['next', 'other']);
  const text = lines.join('\n');
  assert.match(text, /FAILED +throws/);
  assert.match(text, /broken check/);
  assert.match(text, /left out +missing +no tool/);
  assert.match(text, /failed: .*needs/);
});

test('a step that throws what is no error is a failure with its text', async (t) => {
  for (const [thrown, shown] of [
    ['bare text', /bare text/],
    [undefined, /undefined/],
    [null, /null/],
  ] as const) {
    const lines = printed(t);
    const check = (): Promise<never> => Promise.reject(thrown);
    assert.equal(await runSteps([{ name: 'throws', check }]), 1);
    assert.match(lines.join('\n'), shown);
    t.mock.restoreAll();
  }
});

test('an unknown name is refused, and nothing runs', async (t) => {
  const lines = printed(t);
  const order: string[] = [];
  assert.equal(await runSteps([passes(order, 'types', 'a')], ['tipes']), 1);
  assert.deepEqual(order, []);
  assert.match(lines.join(), /no such check: tipes/);
});
