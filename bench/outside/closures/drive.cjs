// Appended to a case of the corpus, which so stays the program's main module: its function is code of the
// program and travels by value. Prints one line of JSON: what was observed at home and in workers.
'use strict';

const { observe } = require('../lib/observe.cjs');

module.exports = (main) => setImmediate(drive, main);

async function drive(main) {
  const { run } = await import(process.env.OUTSIDE_MANYCORE);
  const { func, after } = main.exports;
  const args = JSON.parse(process.env.OUTSIDE_ARGS);
  const outcomes = {};
  const settle = async (way, promise) => {
    outcomes[way] = await promise.then(
      (text) => ({ text }),
      ({ name, code, message, stack }) => ({ name, code, message, stack }),
    );
  };
  // Snapshots are taken here, in the same turn in which the function runs at home: it may change what it captured.
  const captured = settle(
    'captured',
    run(() => observe(func, args)),
  );
  const passed = settle(
    'argument',
    run((f, a) => observe(f, a), func, args),
  );
  const home = settle('home', observe(func, args));
  after?.();
  await Promise.all([captured, passed, home]);
  process.stdout.write(`\nOUTCOMES ${JSON.stringify(outcomes)}\n`, () => process.exit());
}
