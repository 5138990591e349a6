// Counts the requests that this thread answers, for `manycore trace -- COMMAND` (request-counts.ts), which
// loads it by NODE_OPTIONS into unsuspecting programs. It must have no visible effect: every error is
// swallowed; no file is opened and no event subscribed before the first answer; no timer keeps the program
// alive. It is CommonJS because only that can be loaded by --require in every Node. It takes its functions
// at load time, before a program replaces them.

const everyMs = 100;
/** A count is always written over as many bytes, so that readers never find half of it. */
const widthBytes = 16;

/** Throws in a Node that is too old. */
function count(folder: string): void {
  const { openSync, writeSync }: typeof import('node:fs') = require('node:fs');
  const {
    subscribe,
  }: typeof import('node:diagnostics_channel') = require('node:diagnostics_channel');
  const { threadId }: typeof import('node:worker_threads') = require('node:worker_threads');
  const { setTimeout: startTimer }: typeof import('node:timers') = require('node:timers');
  let answered = 0;
  let written = 0;
  let flushed = 0;
  let file: number | undefined;
  let isWaiting = false;

  const write = (): void => {
    try {
      // The name contains the time: process numbers may be reused, or be those of another namespace.
      file ??= openSync(
        `${folder}/${process.pid}-${threadId}-${process.hrtime.bigint()}`,
        'wx',
        0o600,
      );
      writeSync(file, String(answered).padStart(widthBytes), 0);
      written = answered;
    } catch {
      // no room, no permission, or the trace is over: the next answer tries again
    }
  };
  // Writes the first answer after a pause at once, so that a slow server loses none when it is killed.
  const flush = (): void => {
    flushed = answered;
    write();
    isWaiting = true;
    startTimer(() => {
      isWaiting = false;
      if (flushed !== answered) flush();
    }, everyMs).unref();
  };
  const add = (): void => {
    if (answered === 0) {
      process.once('exit', () => {
        if (written !== answered) write();
      });
    }
    answered += 1;
    if (!isWaiting) flush();
  };

  subscribe('http.server.response.finish', add);
  // HTTP/2 has a channel in newer releases only. A reset stream has no answer.
  subscribe('http2.server.stream.close', (message) => {
    if (Object(Object(message).stream).rstCode === 0) add();
  });
}

try {
  const folder = process.env['MANYCORE_TRACE_REQUESTS'];
  if (folder !== undefined && folder !== '') count(folder);
} catch {
  // a Node without these modules goes uncounted
}
