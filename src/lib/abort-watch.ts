// One listener for each signal, however many calls it is given to. Node searches its list of listeners
// for each that is added or removed, so thousands of calls on one signal would cost seconds; and from the
// eleventh on it warns of a leak that is none.

import { ownOf } from './input/check.js';

interface Watch {
  readonly listeners: Set<() => void>;
  readonly onAbort: () => void;
}

const watches = new WeakMap<AbortSignal, Watch>();

function watchOf(signal: AbortSignal): Watch {
  const listeners = new Set<() => void>();
  const onAbort = (): void => {
    watches.delete(signal); // Node has removed the listener
    for (const listener of listeners) listener();
  };
  signal.addEventListener('abort', onAbort, ownOf({ once: true }));
  return { listeners, onAbort };
}

/** Calls `listener` once, when `signal` is aborted: never, if it is aborted already. */
export function watchAbort(signal: AbortSignal, listener: () => void): void {
  let watch = watches.get(signal);
  if (watch === undefined) {
    watch = watchOf(signal);
    watches.set(signal, watch);
  }
  watch.listeners.add(listener);
}

/** After the last one no listener is left on `signal`. Twice, and after the abort, is fine. */
export function unwatchAbort(signal: AbortSignal, listener: () => void): void {
  const watch = watches.get(signal);
  if (watch === undefined || !watch.listeners.delete(listener) || watch.listeners.size > 0) return;
  watches.delete(signal);
  signal.removeEventListener('abort', watch.onAbort);
}
