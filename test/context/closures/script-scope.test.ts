// Variables at the top of classic scripts (vm, the prompt): one scope for all scripts of a realm, so
// functions of several scripts share them. Programs are random; `MANYCORE_RUNS=n` makes that many.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import vm from 'node:vm';
import { hasCode } from '../../../src/errors.js';
import { type Random, random, seeded } from '../../support/index.js';
import { runElsewhere } from '../elsewhere.js';
import { Peer } from '../harness.js';

const library = new URL('../../../src/public.js', import.meta.url).href;

/** Runs `texts` as scripts, in a context of their own where `isApart`; returns the result of the last one. */
function runScripts(texts: readonly string[], isApart: boolean): unknown {
  const context = isApart ? vm.createContext({}) : undefined;
  return texts
    .map((text) => (context ? vm.runInContext(text, context) : vm.runInThisContext(text)))
    .at(-1);
}

/** Scripts that declare variables named with `mark`, and functions that use those of all scripts. */
function program(chance: Random, mark: string): string[] {
  const kinds = Array.from({ length: chance.integer(2, 5) }, () =>
    chance.pick(['let', 'let', 'var', 'const', 'class', 'function']),
  );
  const names = kinds.map((_, at) => `${mark}_${at}`);
  const read = (at: number): string => {
    const name = names[at];
    if (kinds[at] === 'const') return `${name}.n`;
    if (kinds[at] === 'class') return `${name}.grow()`;
    return kinds[at] === 'function' ? `${name}()` : `${name}`;
  };
  const any = (): number => chance.integer(0, names.length);
  const write = (at: number): string => {
    const name = names[at];
    if (kinds[at] === 'const') return `++${name}.n`;
    if (kinds[at] === 'class') return `${name}.grow()`;
    return kinds[at] === 'function'
      ? `(${name} = () => ${chance.integer(5, 9)})`
      : `(${name} += 2)`;
  };
  const declared = kinds.map((kind, at) => {
    const name = names[at];
    const before = at === 0 ? '1' : read(chance.integer(0, at));
    if (kind === 'const') return `const ${name} = { n: 1 };`;
    if (kind === 'class')
      return `class ${name} { static grow() { return ${at === 0 ? '1' : write(chance.integer(0, at))} } }`;
    if (kind === 'function') return `function ${name}() { return ${before} }`;
    return `${kind} ${name} = ${at};`;
  });
  const use = (): string =>
    chance.pick([
      () => `() => ${write(any())}`,
      () => `() => [${read(any())}, ${read(any())}]`,
      () => `function () { ${write(any())}; return ${read(any())} }`,
      () => `() => { const f = () => ${write(any())}; return [f(), ${read(any())}, f()] }`,
    ])();
  const functions = `const ${mark}_fs = [];`;
  const scripts = [functions, ...declared];
  for (let at = chance.integer(1, 4); at > 0; at -= 1)
    scripts.push(`${mark}_fs.push(${use()}, ${use()})`);
  const steps = Array.from({ length: chance.integer(1, 5) }, () =>
    chance.pick([
      () => `log.push(...fs.map((f) => f()))`,
      () => `log.push(${read(any())})`,
      () => `log.push(${write(any())})`,
    ])(),
  );
  const fn = `(fs) => { const log = []; ${steps.join('; ')}; return JSON.stringify(log) }`;
  const isGiven = chance.next() < 0.5;
  scripts.push(isGiven ? `[${fn}, [${mark}_fs]]` : `[((fs) => () => (${fn})(fs))(${mark}_fs), []]`);
  return scripts;
}

test('functions of several scripts share the variables at their top', async (t) => {
  const { seed } = random(t);
  const runs = Number(process.env['MANYCORE_RUNS'] ?? 8);
  let refused = 0;
  for (let run = 0; run < runs; run += 1) {
    const chance = seeded(seed + run);
    const texts = program(chance, `v${seed + run}`);
    const made: unknown = runScripts(texts, chance.next() < 0.5);
    const [fn, args] = made as [(...args: unknown[]) => unknown, unknown[]];
    const where = `MANYCORE_RUNS=1 MANYCORE_SEED=${seed + run}\n${texts.join('\n')}`;
    let elsewhere: unknown;
    try {
      elsewhere = runElsewhere(fn, args);
    } catch (error) {
      assert.ok(hasCode(error, 'TRANSFER_SHARED_VARIABLE'), `${String(error)}\n${where}`);
      refused += 1;
      continue;
    }
    assert.equal(elsewhere, fn(...args), where);
  }
  t.diagnostic(`${refused} of ${runs} were refused`);
  assert.ok(refused <= runs / 4);
});

test('scripts of one text in two contexts have two variables', () => {
  const [[up, get], [other, otherGet]] = [0, 1].map(() =>
    runScripts(['let count = 1; const up = () => ++count', '[up, () => count]'], true),
  ) as [[() => number, () => number], [() => number, () => number]];
  const fn = () => [up(), up(), other(), get(), otherGet()];
  assert.deepEqual(runElsewhere(fn, []), fn());
});

test('functions typed at the prompt share the variables typed there', async () => {
  const lines = [
    'let total = 1',
    'const add = () => ++total',
    'const box = class { static add() { return ++total } }',
    'const fn = () => [add(), total, box.add(), total]',
    `import(${JSON.stringify(library)}).then(async ({ run }) => {`,
    '  console.log("\\nthere", JSON.stringify(await run(fn)))',
    '  console.log("here", JSON.stringify(fn()))',
    '  process.exit()',
    '})',
  ];
  const child = spawn(process.execPath, ['-i'], { stdio: ['pipe', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  child.stdin.write(`${lines.join('\n')}\n`);
  await new Promise((resolve) => child.once('close', resolve));
  assert.match(output, /^there \[2,2,3,3\]$/m);
  assert.match(output, /^here \[2,2,3,3\]$/m);
});

for (const isApart of [false, true]) {
  test(`a name that a later script declares is found${isApart ? ', in another realm' : ''}`, async (t) => {
    const peer = new Peer();
    t.after(() => peer.close());
    const context = isApart ? vm.createContext({}) : undefined;
    const script = (text: string): unknown =>
      context ? vm.runInContext(text, context) : vm.runInThisContext(text);
    for (const kind of ['let', 'const', 'class']) {
      const name = `later_${kind}_${isApart}`;
      const fn: unknown = script(`() => typeof ${name}`);
      if (typeof fn !== 'function') throw new TypeError('the text is not a function');
      const call = (): unknown => fn();
      for (let turn = 0; turn < 3; turn += 1) assert.equal(await peer.run(call), 'undefined');
      script(kind === 'class' ? `class ${name} {}` : `${kind} ${name} = 1`);
      const home = kind === 'class' ? 'function' : 'number';
      for (let turn = 0; turn < 3; turn += 1) assert.equal(await peer.run(call), home);
    }
  });
}
