/**
 * Calls `make` while new errors record no stack: most of what one costs is its stack. For errors whose
 * frames would say nothing. Where intrinsics are frozen, the stack is recorded all the same.
 */
export function withoutStack<T>(make: () => T): T {
  const { stackTraceLimit } = Error;
  if (!Reflect.set(Error, 'stackTraceLimit', 0)) return make();
  try {
    return make();
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  }
}
