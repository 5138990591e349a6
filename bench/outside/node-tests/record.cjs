// Loaded into each process of a run (NODE_OPTIONS): writes to a file how the loop's process ends. The exit event
// alone is not enough: Node's tests end the process in it once more when a call that they expect is missing.
const { appendFileSync } = require('node:fs');
const { isMainThread } = require('node:worker_threads');

if (isMainThread && process.argv[1]?.endsWith('serve-entry.js')) {
  const write = (code) => appendFileSync(process.env.RECORD, `${process.pid} ${code}\n`);
  const { reallyExit } = process;
  write('begins');
  process.on('exit', write);
  process.reallyExit = function (code) {
    write(code);
    reallyExit.call(this, code);
  };
}
