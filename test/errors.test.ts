// The table of codes, the page that explains them and the code that throws them, held together in
// every direction: an unused, unexplained or undeclared code is a failure.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CodedError, errorCodes, hasCode } from '../src/errors.js';
import { filesBelow, readRepositoryFile, sourceFiles } from './support/repository.js';

const declared = Object.keys(errorCodes);

/** Headings of the third level are codes; each section is its text up to the next heading. */
function documentedSections(): Map<string, string> {
  const page = readRepositoryFile('docs/errors.md');
  const sections = page.split(/^#{2,3} /m).slice(1);
  return new Map(
    sections
      .map((section) => [section.slice(0, section.indexOf('\n')), section] as const)
      .filter(([title]) => /^[A-Z_]+$/.test(title)),
  );
}

/** Codes in the string literals of the sources, Rust included, the table itself left out. */
function usedCodes(): Set<string> {
  const prefixes = [...new Set(declared.map((code) => code.split('_')[0]))].join('|');
  const literal = new RegExp(`['"]((?:${prefixes})(?:_[A-Z]+)*)['"]`, 'g');
  const used = new Set<string>();
  const sources = [...sourceFiles(), ...filesBelow('crates', '.rs')];
  for (const file of sources.filter((name) => name !== 'src/errors.ts')) {
    const text = readRepositoryFile(file);
    for (const [, code] of text.matchAll(literal)) if (code !== undefined) used.add(code);
  }
  used.delete('TRACE'); // a method of HTTP
  return used;
}

test('every code of the table has a section in docs/errors.md that begins with the same fact', () => {
  const sections = documentedSections();
  for (const [code, fact] of Object.entries(errorCodes)) {
    const section = sections.get(code);
    assert.ok(section, `docs/errors.md has no section for ${code}`);
    const sentence = `${fact.charAt(0).toUpperCase()}${fact.slice(1)}.`;
    assert.ok(
      section.startsWith(`${code}\n\n${sentence}\n`),
      `${code}: "${sentence}" is not there`,
    );
  }
});

test('every section has a cause and a remedy', () => {
  for (const [code, section] of documentedSections()) {
    assert.match(section, /^\*\*What happened\.\*\* \S/m, code);
    assert.match(section, /^\*\*What to do\.\*\* \S/m, code);
  }
});

test('docs/errors.md explains no code that the table does not have, and none twice', () => {
  assert.deepEqual(
    [...documentedSections().keys()].filter((code) => !declared.includes(code)),
    [],
  );
  const page = readRepositoryFile('docs/errors.md');
  const headings = page.match(/^### .*$/gm) ?? [];
  assert.equal(new Set(headings).size, headings.length);
});

test('every code of the table is used by some source', () => {
  const used = usedCodes();
  assert.deepEqual(
    declared.filter((code) => !used.has(code)),
    [],
  );
});

test('every code that a source uses is in the table', () => {
  assert.deepEqual(
    [...usedCodes()].filter((code) => !declared.includes(code)),
    [],
  );
});

test('hasCode accepts our errors, errors from elsewhere with the same code, and nothing else', () => {
  const error = new CodedError('POOL_CLOSED', 'the pool is closed', { cause: 1 });
  assert.ok(error instanceof Error && error.name === 'CodedError' && error.cause === 1);
  assert.ok(hasCode(error, 'POOL_CLOSED') && hasCode({ code: 'POOL_CLOSED' }, 'POOL_CLOSED'));
  assert.ok(
    !hasCode(error, 'POOL_BUSY') && !hasCode(undefined, 'POOL_BUSY') && !hasCode('x', 'ABORTED'),
  );
});

test('errors of aborts and timeouts have the names that programs check', () => {
  assert.equal(new CodedError('ABORTED', 'text').name, 'AbortError');
  for (const code of ['TASK_TIMED_OUT', 'TASK_WAITED_TOO_LONG', 'BUS_TIMEOUT'] as const) {
    assert.equal(new CodedError(code, 'text').name, 'TimeoutError');
  }
});

test('hasCode narrows to the properties of an error with that code', () => {
  const error: unknown = Object.assign(new CodedError('WORKER_EXITED', 'x'), { exitCode: 3 });
  assert.ok(hasCode(error, 'WORKER_EXITED'));
  const { exitCode, signal }: { exitCode?: number | null; signal?: string | null } = error;
  assert.deepEqual([exitCode, signal], [3, undefined]);
});

test('hasCode narrows to an error with that code', () => {
  const error: unknown = new CodedError('POOL_BUSY', 'all workers are at work');
  assert.ok(hasCode(error, 'POOL_BUSY'));
  const { code, message }: { code: 'POOL_BUSY'; message: string } = error;
  assert.deepEqual([code, message], ['POOL_BUSY', 'all workers are at work']);
});
