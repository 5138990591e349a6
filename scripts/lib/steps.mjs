// Runs a list of checks, one after the other. Prints one line each, and the output of those that fail.
import { stripVTControlCharacters } from 'node:util';

/**
 * Runs `steps`, `{ name, check, needs? }`, in order: those named in `wanted`, or all for an empty list.
 * `check` resolves to `{ status, output }` and may add `note`. `needs` may resolve to a reason why the step
 * cannot run here. Resolves to the number of steps that failed.
 */
export async function runSteps(steps, wanted = []) {
  const unknown = wanted.filter((name) => !steps.some((step) => step.name === name));
  if (unknown.length > 0) {
    console.error(
      `no such check: ${unknown}. There are: ${steps.map(({ name }) => name).join(' ')}`,
    );
    return unknown.length;
  }
  const chosen = steps.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
  const failed = [];
  for (const { name, check, needs } of chosen) {
    const missing = await needs?.();
    if (missing) {
      print('left out', name, missing);
      continue;
    }
    const started = performance.now();
    const { status, output, note = '' } = await check();
    const seconds = `${((performance.now() - started) / 1000).toFixed(1)} s`;
    print(status === 0 ? 'ok' : 'FAILED', name, `${seconds.padStart(7)}  ${note}`.trimEnd());
    if (status === 0) continue;
    failed.push(name);
    console.log(stripVTControlCharacters(output).trimEnd().replace(/^/gm, '    '));
  }
  if (failed.length > 0) console.log(`\nfailed: ${failed.join(', ')}`);
  return failed.length;
}

function print(outcome, name, text) {
  console.log(`${outcome.padEnd(9)} ${name.padEnd(12)} ${text}`);
}
