// Process warnings that appear while a test does something.

import type { TestContext } from 'node:test';

/** The messages of the warnings with `code` that are emitted while `body` runs. */
export async function warningsWith(
  t: TestContext,
  code: string,
  body: () => Promise<void>,
): Promise<string[]> {
  const messages: string[] = [];
  const onWarning = (warning: Error): void => {
    if (Reflect.get(warning, 'code') === code) messages.push(warning.message);
  };
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  await body();
  await new Promise((turn) => setImmediate(turn)); // they are emitted in the next turn
  process.off('warning', onWarning);
  return messages;
}
