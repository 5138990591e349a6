// What does a call of a closure cost, against a rival that calls an exported function?
import { basename } from 'node:path';
import { openContender } from '../lib/contenders.js';
import { micros, runsOf } from '../lib/figures.js';
import { expectSame, timeCalls, warmUpMs } from '../lib/measure.js';
import { add } from '../lib/tasks.js';

const captures = ['manycore-process+let', 'manycore-process+constants', 'manycore-process+nothing'];
const rivals = ['piscina', 'bare-thread'];

const bar = (setting, capture, atMost, says) => ({
  says,
  figure: 'p50Us',
  of: { setting, contender: `manycore-process+${capture}` },
  against: [{ setting, contender: 'piscina' }],
  atMost,
});

export default {
  figures: { p50Us: micros('p50'), p99Us: micros('p99') },
  settings: {
    kept: { says: 'one function object, called again and again, its captured `let` changing' },
    fresh: { says: 'a new function object for each call, as an event handler makes it' },
    pinned: { says: 'kept, all on one core: what the software costs', cores: 1 },
  },
  runs: [
    ...runsOf('kept', [...captures, ...rivals]),
    ...runsOf('fresh', [...captures, ...rivals]),
    ...runsOf('pinned', [...captures, ...rivals]),
  ],
  bars: [
    bar('kept', 'let', 2, 'closure with three captures, one `let`, against piscina without any'),
    bar('kept', 'constants', 0.6, 'closure with constants and imports only, against piscina'),
    bar('fresh', 'let', 2, 'the same with three captures, a new closure for each call'),
    bar(
      'fresh',
      'constants',
      0.6,
      'the same with constants and imports, a new closure for each call',
    ),
  ],
  async measure({ contender, setting, scale }) {
    const opened = await openContender(contender);
    const windows = { warmMs: warmUpMs * scale, windowMs: 200 * scale };
    const [, capture] = contender.split('+');
    if (capture === undefined) {
      return timeCalls(opened.caller('add'), (got, turn) => expectSame(got, turn + 1), windows);
    }
    const { pool } = opened;
    const make = makers[capture]();
    let closure = make();
    const call = (turn) => {
      if (setting === 'fresh') closure = make();
      return pool.run(closure.run, turn);
    };
    return timeCalls(call, (got, turn) => expectSame(got, closure.wanted(turn)), windows);
  },
};

// Makers of closures. Their computation takes next to no time: the case measures the capture.
const makers = {
  let() {
    const scale = 3;
    const label = 'lamp';
    let count = 0;
    return () => ({
      run: (n) => n * scale + label.length + count,
      wanted: (turn) => turn * scale + label.length + count++, // changes the value for the next call
    });
  },
  constants() {
    const scale = 3;
    const label = '/shop/lamp.js';
    return () => ({
      run: (n) => add(n * scale) + basename(label).length,
      wanted: (turn) => turn * scale + 1 + 'lamp.js'.length,
    });
  },
  nothing() {
    return () => ({ run: (n) => n + 1, wanted: (turn) => turn + 1 });
  },
};
