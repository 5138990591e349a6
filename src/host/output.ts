// What a host writes to stdout and stderr, for a listener in this process instead of its own output.

import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { clearTimeout, startTimer } from '../internal/index.js';

export interface OutputSource {
  /** Its number, as `hostNumber()` gives it there. */
  readonly host: number;
  readonly stream: 'stdout' | 'stderr';
}

export type OutputListener = (text: string, from: OutputSource) => void;

/** A child of the host may hold its streams open: the end of the host waits no longer for them. */
const restMs = 200;

/** Resolves when all of it has come. The streams keep no program alive. */
export function listenToOutput(
  stdout: Readable | null,
  stderr: Readable | null,
  host: number,
  listener: OutputListener,
): Promise<unknown> {
  return Promise.all(
    Object.entries({ stdout, stderr }).map(async ([name, from]) => {
      if (from === null) return;
      const stream = name === 'stdout' ? 'stdout' : 'stderr';
      from.setEncoding('utf8');
      from.on('data', (text: string) => listener(text, { host, stream }));
      if (from instanceof Socket) from.unref();
      await new Promise<void>((resolve) => {
        from.once('close', resolve).once('end', resolve);
      });
    }),
  );
}

/** Calls `end` when the rest of the output has come. */
export function afterOutput(output: Promise<unknown> | undefined, end: () => void): void {
  if (output === undefined) {
    end();
    return;
  }
  let isOver = false;
  const over = (): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    end();
  };
  const timer = startTimer(restMs, over);
  void output.then(over);
}
