import assert from 'node:assert/strict';
import { test } from 'node:test';
import { membersOf } from '../support/option-names.js';
import { readRepositoryFile } from '../support/repository.js';

const page = readRepositoryFile('docs/guide/pool.md');

function rowsBelow(heading: string): string[] {
  const [, section = ''] = page.split(`\n## ${heading}\n`);
  const [text = ''] = section.split('\n## ');
  return [...text.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = '']) => name);
}

for (const [type, heading] of [
  ['PoolOptions', 'Options of a pool'],
  ['CallOptions', 'Options of a call'],
] as const) {
  test(`the guide has each option of ${type}, in their order`, () => {
    const members = membersOf('src/pool/options.ts', type);
    assert.ok(members.length > 5);
    assert.deepEqual(rowsBelow(heading), members);
  });
}
