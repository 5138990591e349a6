// Messages between `tune` and the process that runs a load script or a task for it, and their only parser.

import { CodedError } from '../errors.js';
import { type LoadResult, parseResult } from './load/load-output.js';

/** Message to the process: load for this time. */
export interface RunMessage {
  readonly type: 'run';
  /** URL of the program; '' for a task. */
  readonly url: string;
  readonly port: number;
  readonly seconds: number;
}

export type FromRunner =
  /** The module is loaded. */
  | { readonly type: 'ready' }
  /** `tookMs`: duration of the load. */
  | { readonly type: 'done'; readonly result: LoadResult | undefined; readonly tookMs: number }
  | { readonly type: 'failed'; readonly message: string };

export function parseRunMessage(value: unknown): RunMessage {
  const fields = new Map<string, unknown>(Object.entries(Object(value)));
  const { type, url, port, seconds } = Object.fromEntries(fields);
  if (
    type === 'run' &&
    typeof url === 'string' &&
    typeof port === 'number' &&
    typeof seconds === 'number'
  ) {
    return { type, url, port, seconds };
  }
  throw new CodedError('INTERNAL_STATE', `no message for a load: ${JSON.stringify(value)}`);
}

/** Returns `undefined` for a program's own messages. */
export function parseFromRunner(value: unknown): FromRunner | undefined {
  const fields = new Map<string, unknown>(Object.entries(Object(value)));
  const { type, result, tookMs, message } = Object.fromEntries(fields);
  if (type === 'ready') return { type };
  if (type === 'done' && typeof tookMs === 'number') {
    return { type, result: parseResult(result), tookMs };
  }
  if (type === 'failed' && typeof message === 'string') return { type, message };
  return undefined;
}
