// A promise with its two ends in reach of whoever settles it: `Promise.withResolvers` is not in
// Node 20, and a worker's answer arrives far from where the caller began to wait.

/** A promise and what settles it. Settling twice changes nothing. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T | PromiseLike<T>) => void;
  readonly reject: (reason: unknown) => void;
}

/** A promise that waits for its `resolve` or `reject`. Whoever makes it sees that it is handled. */
export function defer<T>(): Deferred<T> {
  let resolve: Deferred<T>['resolve'] = unset;
  let reject: Deferred<T>['reject'] = unset;
  // The executor runs at once, so both are real before they leave this function.
  const promise = new Promise<T>((resolvePromise, rejectPromise) => {
    resolve = resolvePromise;
    reject = rejectPromise;
  });
  return { promise, resolve, reject };
}

function unset(): void {}
