// docs/design/vertx.md against the tables of cases, and the other tests that these name.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRepositoryFile } from '../../support/repository.js';
import { unitCases } from '../../units/vertx/table.js';
import { countRow, type Listed, reasonTable } from './page.js';
import { busCases } from './table.js';

const tables: readonly (readonly [string, readonly Listed[]])[] = [
  ['bus', busCases],
  ['deployments', unitCases],
];

test('docs/design/vertx.md has the numbers of the cases, and all differences by name', () => {
  const page = readRepositoryFile('docs/design/vertx.md');
  for (const [title, cases] of tables) {
    for (const part of [
      countRow(title, cases),
      reasonTable(cases, 'differs'),
      reasonTable(cases, 'absent'),
      reasonTable(busCases, 'overNats'),
    ]) {
      assert.ok(page.includes(part), `the page lacks:\n${part}`);
    }
  }
});

test('each case is listed once, and the tests that cases name are there', () => {
  for (const [, cases] of tables) {
    const names = cases.map(({ name }) => name);
    assert.deepEqual(names, [...new Set(names)]);
    for (const { name, shownBy } of cases) {
      if (shownBy === undefined) continue;
      const [file, title] = shownBy;
      const text = readRepositoryFile(`test/${file}`);
      assert.ok(text.includes(`'${title}'`), `${name}: ${file} has no test "${title}"`);
    }
  }
});

test('each case is checked, shown by another test, different or absent', () => {
  for (const { name, differs, absent, shownBy, run } of [...busCases, ...unitCases]) {
    const isListed = differs !== undefined || absent !== undefined || shownBy !== undefined;
    assert.ok(run !== undefined || isListed, name);
    assert.ok(differs === undefined || absent === undefined, name);
  }
});
