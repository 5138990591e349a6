// Raw system calls in partitions, by an addon that is built for these tests (crates/attack).

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { constants } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The functions of the addon. */
interface Raw {
  call(number: number, ...args: readonly (number | Buffer)[]): number;
  compat(number: number): number;
  bomb(): number;
  fill(): number;
  about(): string;
}

/** The numbers of calls by their names, and those that the filter of a sandbox has in its lists. */
export interface Lists {
  readonly numbers: Readonly<Record<string, number>>;
  readonly plain: readonly number[];
  readonly older: readonly number[];
  readonly byArgument: readonly number[];
  readonly network: readonly number[];
}

export interface Calls extends Lists {
  /** Makes a call; returns the name of its error, or `done`. A text becomes bytes that end with zero. */
  readonly by: (name: string, ...args: readonly (number | Buffer | string)[]) => string;
  /** The same with a number. */
  readonly numbered: (number: number, ...args: readonly number[]) => string;
  readonly raw: Raw;
}

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** For `test(name, { skip }, …)`. */
export const skipRaw =
  spawnSync('cargo', ['--version']).status === 0 ? false : 'cargo is not installed';

let built: string | undefined;

/** Returns the path of the addon, for `read`. */
export function attackAddon(): string {
  if (built === undefined) {
    const args = ['build', '--quiet', '--locked', '--package', 'manycore-attack'];
    const { status, stderr } = spawnSync('cargo', args, { cwd: root, encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    const target = process.env['CARGO_TARGET_DIR'] ?? join(root, 'target');
    built = join(target, 'debug/libmanycore_attack.so');
  }
  return built;
}

/** Sent into partitions. */
export function callsOf(addon: string): Calls {
  const isRaw = (value: object): value is Raw => 'call' in value;
  const module = { exports: {} };
  process.dlopen(module, addon);
  const { exports: raw } = module;
  if (!isRaw(raw)) throw new Error('the addon has no functions');
  const lists: Lists = JSON.parse(raw.about());
  const names = new Map(Object.entries(constants.errno).map(([name, number]) => [number, name]));
  const textOf = (result: number): string =>
    result < 0 ? (names.get(-result) ?? String(result)) : 'done';
  return {
    ...lists,
    raw,
    numbered: (number, ...args) => textOf(raw.call(number, ...args)),
    by: (name, ...args) => {
      const number = lists.numbers[name];
      if (number === undefined) throw new Error(`the addon has no number of ${name}`);
      const given = args.map((each) =>
        typeof each === 'string' ? Buffer.from(`${each}\0`) : each,
      );
      return textOf(raw.call(number, ...given));
    },
  };
}
