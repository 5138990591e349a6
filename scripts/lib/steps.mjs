// Runs checks: those of each chain in order, and the chains side by side. Prints a line for each check when it
// has ended, and the output of those that fail.
import { stripVTControlCharacters } from 'node:util';

/**
 * Runs `steps`, `{ name, check, needs?, chain? }`: those named in `wanted`, or all for an empty list. Steps of
 * the same `chain` follow each other. `check` resolves to `{ status, output }` and may add `note`; an error is
 * a failure. `needs` may resolve to a reason why the step cannot run here. Resolves to the number of steps
 * that failed.
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
  const chains = [...new Set(chosen.map(({ chain }) => chain))];
  const failed = [];
  await Promise.all(
    chains.map(async (chain) => {
      for (const step of chosen) {
        if (step.chain === chain && !(await passes(step))) failed.push(step.name);
      }
    }),
  );
  if (failed.length > 0) console.log(`\nfailed: ${failed.join(', ')}`);
  return failed.length;
}

/** Runs one step and prints its line. Resolves to true when it passed or was left out. */
async function passes({ name, check, needs }) {
  const started = performance.now();
  let result;
  try {
    const missing = await needs?.();
    if (missing) {
      print('left out', name, missing);
      return true;
    }
    result = await check();
  } catch (error) {
    // An error that left here would end this process, and leave those of other chains running.
    result = { status: 1, output: String(error?.stack ?? error) };
  }
  const { status, output, note = '' } = result;
  const seconds = `${((performance.now() - started) / 1000).toFixed(1)} s`;
  print(status === 0 ? 'ok' : 'FAILED', name, `${seconds.padStart(7)}  ${note}`.trimEnd());
  if (status !== 0) console.log(stripVTControlCharacters(output).trimEnd().replace(/^/gm, '    '));
  return status === 0;
}

function print(outcome, name, text) {
  console.log(`${outcome.padEnd(9)} ${name.padEnd(12)} ${text}`);
}
