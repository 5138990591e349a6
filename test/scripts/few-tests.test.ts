// The list of what a short run of the tests leaves out (scripts/lib/few-tests.mjs), against the files that there are.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = new URL('../../../', import.meta.url);
const at = (path: string) => new URL(path, root).href;
const { leftOut, ofNodeLines, repeated } = await import(at('scripts/lib/few-tests.mjs'));
const { typeScriptFiles } = await import(at('scripts/lib/sources.mjs'));

process.chdir(fileURLToPath(root));
const files: readonly string[] = typeScriptFiles().filter((name: string) =>
  name.endsWith('.test.ts'),
);

test('each file that a short run leaves out is there, and so is what it keeps instead', () => {
  for (const name of leftOut) assert.ok(existsSync(new URL(name, root)), name);
  for (const [name, kept] of Object.entries<string[]>(repeated)) {
    assert.ok(kept.length > 0, name);
    for (const part of kept) {
      const found = files.some((file) => file.includes(`test/${part}`) && !leftOut.includes(file));
      assert.ok(found, `${part}, named for ${name}`);
    }
  }
});

test('each name of the tests of a line of Node is that of a file', () => {
  for (const part of ofNodeLines)
    assert.ok(
      files.some((file) => file.includes(part)),
      part,
    );
});
