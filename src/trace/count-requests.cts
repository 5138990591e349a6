// Counts the requests that this thread answers, for `manycore trace -- COMMAND` (request-counts.ts), which
// has NODE_OPTIONS load it into programs that know nothing of it. So it must not be noticed: whatever
// fails here is swallowed, because no figure is worth a program; nothing is opened and no event is heard
// before the first answer; no timer keeps the program. It is CommonJS because only that can be loaded by
// --require in every Node, and what it needs it takes now, before a program replaces it.

const everyMs = 100;
/** A count is always written over as many bytes, so that no reader finds half of it. */
const widthBytes = 16;

/** Throws where Node is too old. */
function count(folder: string): void {
  const { openSync, writeSync }: typeof import('node:fs') = require('node:fs');
  const {
    subscribe,
  }: typeof import('node:diagnostics_channel') = require('node:diagnostics_channel');
  const { threadId }: typeof import('node:worker_threads') = require('node:worker_threads');
  const { setTimeout: startTimer }: typeof import('node:timers') = require('node:timers');
  let answered = 0;
  let written = 0;
  let told = 0;
  let file: number | undefined;
  let isWaiting = false;

  const write = (): void => {
    try {
      // The moment is in the name because process numbers may be given again, or be another namespace's.
      file ??= openSync(
        `${folder}/${process.pid}-${threadId}-${process.hrtime.bigint()}`,
        'wx',
        0o600,
      );
      writeSync(file, String(answered).padStart(widthBytes), 0);
      written = answered;
    } catch {
      // No room, no right, or the trace is over: the next answer tries again.
    }
  };
  // The first answer after a pause is written at once, so a slow server loses none when it is killed.
  const tell = (): void => {
    told = answered;
    write();
    isWaiting = true;
    startTimer(() => {
      isWaiting = false;
      if (told !== answered) tell();
    }, everyMs).unref();
  };
  const add = (): void => {
    if (answered === 0) {
      process.once('exit', () => {
        if (written !== answered) write();
      });
    }
    answered += 1;
    if (!isWaiting) tell();
  };

  subscribe('http.server.response.finish', add);
  // Only newer Nodes tell of HTTP/2. A stream that was reset has no answer.
  subscribe('http2.server.stream.close', (message) => {
    if (Object(Object(message).stream).rstCode === 0) add();
  });
}

try {
  const folder = process.env['MANYCORE_TRACE_REQUESTS'];
  if (folder !== undefined && folder !== '') count(folder);
} catch {
  // A Node without these modules goes uncounted.
}
