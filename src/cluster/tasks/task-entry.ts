// Durable tasks inside a worker: reads function and arguments, calls it, and writes the outcome. The node
// itself runs nothing of the task. Not here: the node (task-runner.ts).

import { ByteReader } from '../../channels/index.js';
import { type AnyFunction, type TaskTarget, task } from '../../context/index.js';
import { CodedError } from '../../errors.js';
import { generatorOf } from '../../worker/index.js';
import { ClusterValues } from '../bus/values.js';
import { corrupt, signatureBytes } from '../protocol.js';
import { writeOutcome } from './task-frames.js';

/**
 * Resolves with the outcome, with room for a signature if there is a secret. Rejects for bytes that are no
 * task.
 */
export async function runTask(
  call: Uint8Array,
  target: TaskTarget | null,
  hasSecret: boolean,
): Promise<Uint8Array> {
  const values = new ClusterValues(hasSecret);
  const tailBytes = hasSecret ? signatureBytes : 0;
  try {
    const { fn, args } = await readCall(values, call, target);
    const result: unknown = await Reflect.apply(fn, undefined, args);
    if (generatorOf(result) !== undefined) throw isGenerator();
    return writeOutcome(false, values.encode(result), tailBytes);
  } catch (error) {
    return writeOutcome(true, values.encodeThrown(error), tailBytes);
  }
}

async function readCall(values: ClusterValues, call: Uint8Array, target: TaskTarget | null) {
  const reader = new ByteReader(Buffer.from(call.buffer, call.byteOffset, call.byteLength));
  const read = await new Promise<() => unknown>((resolve) => {
    values.reader().receive(reader, resolve);
  });
  const value = read();
  if (!Array.isArray(value)) throw corrupt('the call of a durable task');
  if (target !== null) return { fn: task(target.url, target.exportName), args: value };
  const [fn, args]: unknown[] = value;
  if (!isFunction(fn) || !Array.isArray(args)) throw corrupt('the call of a durable task');
  return { fn, args };
}

function isFunction(value: unknown): value is AnyFunction {
  return typeof value === 'function';
}

function isGenerator(): CodedError {
  const message = 'a durable task has one result, and this one is a generator: return a list';
  return new CodedError('TRANSFER_UNSUPPORTED', message);
}
