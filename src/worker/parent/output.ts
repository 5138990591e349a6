// The stdout and stderr of a worker, for a listener in this process instead of its own output.

import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { clearTimeout, setImmediate, startTimer } from '../../lib/index.js';

export interface OutputSource {
  /** The `workerNumber()` of that worker. */
  readonly worker: number;
  readonly stream: 'stdout' | 'stderr';
}

export type OutputListener = (text: string, from: OutputSource) => void;

export interface Output {
  /** Resolves when all of it has come. */
  readonly whole: Promise<unknown>;
  /** Stops reading. */
  close(): void;
}

/** Maximum wait for output after the end of the worker, in ms: a child of it may hold its streams open. */
const restMs = 200;

/** Reads the streams, which keep no program alive. */
export function listenToOutput(
  stdout: Readable | null,
  stderr: Readable | null,
  worker: number,
  listener: OutputListener,
): Output {
  const ended: Promise<void>[] = [];
  const streams = [stdout, stderr].filter((each) => each !== null);
  for (const from of streams) {
    const stream = from === stdout ? 'stdout' : 'stderr';
    from.setEncoding('utf8');
    from.on('data', (text: string) => listener(text, { worker, stream }));
    if (from instanceof Socket) from.unref();
    ended.push(
      new Promise((resolve) => {
        from.once('close', resolve).once('end', resolve);
      }),
    );
  }
  return {
    whole: Promise.all(ended),
    close: () => {
      for (const each of streams) each.destroy();
    },
  };
}

/** Calls `end` when the rest of the output has come. */
export function afterOutput(output: Output | undefined, end: () => void): void {
  if (output === undefined) {
    end();
    return;
  }
  let isOver = false;
  const over = (): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    output.close();
    end();
  };
  // A loop that was blocked all the time reads once more before it gives up.
  const timer = startTimer(restMs, () => setImmediate(over));
  void output.whole.then(over);
}
