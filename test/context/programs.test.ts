// Random programs with classes: the same as at home, or a refusal with a way out. Run in this process, from
// one exporter to two importers: one that sees every call, and one that sees the last. MANYCORE_RUNS=100000
// is a campaign.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { createExporter, createImporter, type Importer } from '../../src/context/index.js';
import { CodedError } from '../../src/errors.js';
import { random, seeded } from '../support/index.js';
import { type Program, prelude, programText } from './programs.js';

const exporter = createExporter();

class Peer {
  readonly #importer: Importer = createImporter({ exporter: createExporter() });
  readonly #sent = new Set<number>();

  run({ id, definitions, state }: ReturnType<typeof exporter.exportFunction>): unknown {
    for (const each of definitions) {
      if (this.#sent.has(each)) continue;
      this.#sent.add(each);
      const loading = this.#importer.define(each, exporter.definition(each));
      assert.equal(loading, undefined, 'nothing is to be loaded');
    }
    return this.#importer.importFunction(id, state)();
  }
}

/** A refusal is fine when it names the value and a way out. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof CodedError)) return false;
  return /cannot travel|path:/.test(error.message) && /: /.test(error.message);
}

/** Runs one program to its end; throws at a difference from home. Counts the values that travelled. */
function check({ probe, changes }: Program, count: (travelled: boolean) => void): void {
  const warm = new Peer();
  let last: ReturnType<typeof exporter.exportFunction> | undefined;
  let home: string | undefined;
  for (const change of [() => {}, ...changes]) {
    try {
      change();
    } catch {
      // a frozen class: nothing changed
    }
    try {
      last = exporter.exportFunction(probe);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      count(false);
      last = undefined;
      continue;
    }
    home = JSON.stringify(probe());
    assert.equal(JSON.stringify(warm.run(last)), home, 'in a peer that has seen it');
    count(true);
  }
  if (last !== undefined) assert.equal(JSON.stringify(new Peer().run(last)), home, 'in a new peer');
}

const programsPerModule = 200;

/** The text of a program; empty where the words make no valid program. */
function soundText(seed: number): string {
  const text = programText(seeded(seed));
  try {
    new vm.Script(`'use strict'; (${text})`);
    return text;
  } catch {
    return '() => ({ probe: () => 0, changes: [] })';
  }
}

test('random classes are as at home after random changes, or refused', async (t) => {
  const { seed } = random(t);
  const runs = Number(process.env['MANYCORE_RUNS'] ?? 60);
  const folder = await mkdtemp(join(tmpdir(), 'manycore-programs-'));
  t.after(() => rm(folder, { recursive: true }));
  let [travelled, refused] = [0, 0];
  for (let first = 0; first < runs; first += programsPerModule) {
    const texts = Array.from({ length: Math.min(programsPerModule, runs - first) }, (_, at) =>
      soundText(seed + first + at),
    );
    const isCommonJs = (first / programsPerModule) % 2 === 1;
    const list = `[${texts.join(',\n')}]`;
    const path = join(folder, `programs-${first}.${isCommonJs ? 'cjs' : 'mjs'}`);
    const last = isCommonJs ? `exports.programs = ${list};` : `export const programs = ${list};`;
    await writeFile(path, prelude + last);
    const { programs } = await import(pathToFileURL(path).href);
    for (const [at, make] of programs.entries()) {
      let program: Program;
      try {
        program = make();
      } catch {
        continue; // the program itself does not run
      }
      try {
        check(program, (did) => {
          if (did) travelled += 1;
          else refused += 1;
        });
      } catch (cause) {
        throw new Error(
          `MANYCORE_SEED=${seed + first + at} MANYCORE_RUNS=1\n${texts[at]}\n${cause instanceof Error ? cause.message : cause}`,
          {
            cause,
          },
        );
      }
    }
  }
  t.diagnostic(`${travelled} calls as at home, ${refused} refused`);
  assert.ok(travelled > refused, 'most programs travel');
});
