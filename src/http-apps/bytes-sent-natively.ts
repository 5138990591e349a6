// Bytes that the kernel has sent over a connection by itself (static/send-file.ts), for the status: the
// connection's handle counts only what went through it. Stored at the handle, under a symbol that two copies
// of this module share.

const sentNatively = Symbol.for('manycore.bytesSentNatively');

export function bytesSentNatively(handle: object): number {
  const bytes: unknown = Reflect.get(handle, sentNatively);
  return typeof bytes === 'number' ? bytes : 0;
}

export function addBytesSentNatively(handle: object, bytes: number): void {
  Reflect.set(handle, sentNatively, bytesSentNatively(handle) + bytes);
}
