// GHC's STM, the model of ours: a Haskell program, compiled once where there is a GHC.
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const source = fileURLToPath(new URL('ghc/Structures.hs', import.meta.url));
const folder = fileURLToPath(new URL('../../node_modules/.cache/manycore-ghc/', import.meta.url));
const program = join(folder, 'structures');

/** True: it can be used here; otherwise prints the cause. */
export function hasGhc() {
  try {
    compile();
    return true;
  } catch (error) {
    console.error(`! GHC is left out: ${error.message}`);
    return false;
  }
}

function compile() {
  if (existsSync(program) && statSync(program).mtimeMs > statSync(source).mtimeMs) return;
  mkdirSync(folder, { recursive: true });
  const flags = ['-O2', '-threaded', '-rtsopts', '-outputdir', folder, '-o', program];
  execFileSync('ghc', ['-v0', ...flags, source], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/**
 * Promises the operations per second on a structure of `count` numbers, by so many capabilities. The flags of the
 * collector are those that make it fastest here: a large young area, and no parallel collections.
 */
export async function runGhc(name, count, capabilities, { warmMs, windowMs }) {
  const args = [name, count, Math.round(warmMs), Math.round(windowMs)].map(String);
  const flags = ['+RTS', `-N${capabilities}`, '-A64m', '-qg', '-RTS'];
  const { stdout } = await promisify(execFile)(program, [...args, ...flags]);
  return Number(stdout);
}
