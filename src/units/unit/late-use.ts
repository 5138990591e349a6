// Uses of bus and timers by a unit that has ended, mostly in a timer of Node that nobody has cleared. They get an
// error. Nobody catches that in a timer, and it must not end the loop, whose other units have nothing to do with it.

import { CodedError } from '../../errors.js';
import { setImmediate } from '../../lib/index.js';

/** Errors of late uses, with a function that warns once for each unit. */
const late = new WeakMap<object, (error: CodedError) => void>();

/**
 * Returns the maker of the error for a use of `what` after the end of the instance. When nothing catches it in this
 * turn, it is a warning of Node: one for each instance.
 */
export function lateUseOf(instance: string): (what: string) => CodedError {
  let hasWarned = false;
  const warn = ({ message, code }: CodedError): void => {
    if (!hasWarned) process.emitWarning(message, { type: 'UnitEndedWarning', code });
    hasWarned = true;
  };
  return (what) => {
    const error = new CodedError(
      'BUS_CLOSED',
      `${instance} has ended and still uses ${what}: use setTimeout and setInterval of its context, which end with it`,
    );
    late.set(error, warn);
    catchLate();
    return error;
  };
}

/** Until the next turn: Node allows one such function, and a program may set its own. */
function catchLate(): void {
  if (process.hasUncaughtExceptionCaptureCallback()) return;
  try {
    process.setUncaughtExceptionCaptureCallback(uncaught);
  } catch {
    return; // the program uses domains
  }
  setImmediate(() => process.setUncaughtExceptionCaptureCallback(null));
}

function uncaught(error: unknown): void {
  const warn = error instanceof CodedError ? late.get(error) : undefined;
  if (error instanceof CodedError && warn !== undefined) {
    warn(error);
    return;
  }
  // Node gives it to nobody else now.
  process.setUncaughtExceptionCaptureCallback(null);
  const given = ['uncaughtException', error, 'uncaughtException'];
  if (Reflect.apply(process.emit, process, given) !== true) throw error;
}
