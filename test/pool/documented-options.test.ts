import assert from 'node:assert/strict';
import { test } from 'node:test';
import ts from 'typescript';
import { readRepositoryFile } from '../support/repository.js';

const sources = 'src/pool/options.ts';
const page = readRepositoryFile('docs/guide/pool.md');

/** The members of an interface of the options. */
function membersOf(name: string): string[] {
  const source = ts.createSourceFile(sources, readRepositoryFile(sources), ts.ScriptTarget.ES2023);
  const found = source.statements.filter(ts.isInterfaceDeclaration);
  const members = found.find((each) => each.name.text === name)?.members ?? [];
  return members.map((each) =>
    each.name !== undefined && ts.isIdentifier(each.name) ? each.name.text : '',
  );
}

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
    const members = membersOf(type);
    assert.ok(members.length > 5);
    assert.deepEqual(rowsBelow(heading), members);
  });
}
