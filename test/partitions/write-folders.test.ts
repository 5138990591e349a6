// Folders that a partition may not write: those with programs that run outside of it, or around it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { vmPrograms } from '../../src/worker/index.js';
import { partitionTools } from '../../src/worker/partition/layers.js';
import { skip, skipVm } from './support.js';

function folder(t: TestContext): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'manycore-write-')));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

/** Runs the fixture with `first` before all other folders of PATH; returns what it prints. */
function attempt(first: string, args: readonly string[]): string {
  const script = fileURLToPath(new URL('fixtures/write-folder.js', import.meta.url));
  const env = { ...process.env, PATH: `${first}:${process.env['PATH']}` };
  return execFileSync(process.execPath, [script, ...args], { env, encoding: 'utf8' });
}

const { kernel, runsc } = vmPrograms();
const programs: readonly [name: string, kind: string, path: string, skip: string | false][] = [
  ['bwrap', 'sandbox', skip === false ? partitionTools([]).bubblewrap : '', skip],
  ['bwrap', 'vm', skip === false ? partitionTools([]).bubblewrap : '', skipVm('gvisor')],
  ['runsc', 'vm', 'path' in runsc ? runsc.path : '', skipVm('gvisor')],
  ['linux.uml', 'vm', 'path' in kernel ? kernel.path : '', skipVm('uml')],
];
for (const [name, kind, path, skip] of programs) {
  test(`the options of a ${kind} may not name the folder of ${name} in write, nor where a link leads to it`, {
    skip,
  }, (t) => {
    const [own, away, links] = [folder(t), folder(t), folder(t)];
    const given = name === 'linux.uml' ? [join(away, name)] : [];
    // PATH → a link in `away` → a link in `own` → the program
    symlinkSync(path, join(own, name));
    symlinkSync(join(own, name), join(away, name));
    symlinkSync(own, join(links, 'to-own'));
    mkdirSync(join(own, 'below'));
    for (const write of [own, away, join(links, 'to-own')]) {
      const printed = attempt(away, [kind, write, ...given]);
      assert.match(printed, /worker\.write is .* it must be apart from /, write);
    }
    assert.equal(attempt(away, [kind, join(own, 'below'), ...given]), 'it ran\n');
  });
}
