// Bytes that the kernel has sent over a connection by itself (static/send-file.ts), for the status: the
// connection's handle counts only what went through it. Noted at the handle, under a symbol that two copies
// of this module share.

const sentPast = Symbol.for('manycore.sentPast');

export function sentPastOf(handle: object): number {
  const bytes: unknown = Reflect.get(handle, sentPast);
  return typeof bytes === 'number' ? bytes : 0;
}

export function noteSentPast(handle: object, bytes: number): void {
  Reflect.set(handle, sentPast, sentPastOf(handle) + bytes);
}
