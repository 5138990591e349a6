// Called at the end of each generated program: runs one function in a worker and at home, prints what came of it.
'use strict';

const { isDeepStrictEqual } = require('node:util');

module.exports = (functions) => setImmediate(drive, functions[process.env.OUTSIDE_CASE]);

async function drive(func) {
  const { run } = await import(process.env.OUTSIDE_MANYCORE);
  const worker = await run(func).then(
    (value) => ({ value }),
    (error) => ({ error }),
  );
  const home = await Promise.resolve()
    .then(func)
    .then(
      (value) => ({ value }),
      (error) => ({ error }),
    );
  const outcome = judge(home, worker);
  process.stdout.write(`\nOUTCOME ${JSON.stringify(outcome)}\n`, () => process.exit());
}

function judge(home, worker) {
  if (home.error) return { outcome: 'broken at home', detail: home.error.stack };
  if (worker.error) {
    const { code, message, stack } = worker.error;
    const isRefusal = /^TRANSFER_/.test(code) && code !== 'TRANSFER_CORRUPT';
    return {
      outcome: isRefusal ? 'refused' : 'wrong',
      code,
      detail: code ? `${code} ${message}` : stack,
    };
  }
  if (isDeepStrictEqual(home.value, worker.value)) return { outcome: 'same' };
  return {
    outcome: 'wrong',
    detail: `home ${JSON.stringify(home.value)} worker ${JSON.stringify(worker.value)}`,
  };
}
