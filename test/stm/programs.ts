// Programs of their own with the words of their transactional memory, for tests that spoil it. Places are those of
// crates/core/src/stm/layout.rs.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { programFolder, runNode } from '../pool/programs.js';

const compiled = (path: string): string => new URL(`../../src/${path}`, import.meta.url).href;

const head = `
  import assert from 'node:assert/strict';
  import { openSync } from 'node:fs';
  import { requireNative } from '${compiled('native.js')}';
  import { Pool } from '${compiled('public.js')}';
  import { atomically, atomicallyWhen, check, free, stmStats, tlist, tmap, tqueue, tsortedMap, tvar } from '${compiled('stm/public.js')}';
  const native = requireNative();
  let memoryBytes = 2 ** 26;
  /** The words of the memory, by a participant that leaves it again. */
  const openWords = () => {
    const part = new native.NativeTransactions(1, memoryBytes, 1000, () => {});
    const words = new Int32Array(part.words());
    part.close();
    return words;
  };
  const place = { magic: 0, heapTop: 96, version: 1, sizeWords: 2, threads: 3, numbers: 160, states: 256, wordsOfThread: 192 };`;

/** Runs the text of a module that has these names; its output in lines. */
export async function runWithWords(t: TestContext, text: string): Promise<readonly string[]> {
  const folder = programFolder(t, { 'main.mjs': head + text });
  const { lines, stderr, exitCode } = await runNode(folder, ['main.mjs']);
  assert.equal(exitCode, 0, stderr);
  return lines;
}
