// What does a call of a closure cost, against a rival that calls an exported function?
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { basename } from 'node:path';
import { openContender } from '../lib/contenders.js';
import { micros, perSecond, runsOf } from '../lib/figures.js';
import { countCalls, expectSame, timeCalls, warmUpMs } from '../lib/measure.js';
import { add } from '../lib/tasks.js';

const captures = ['manycore-process+let', 'manycore-process+constants', 'manycore-process+nothing'];
/** With objects and variables of their own, so that all of it is written at each call. */
const graphs = ['manycore-process+this', 'manycore-process+shared'];
const rivals = ['piscina', 'bare-thread'];
const waitingCalls = 64;

const bar = (setting, capture, atMost, says) => ({
  says,
  figure: 'p50Us',
  of: { setting, contender: `manycore-process+${capture}` },
  against: [{ setting, contender: 'piscina' }],
  atMost,
});
const freshBar = (capture, says) => ({
  says,
  figure: 'p50Us',
  of: { setting: 'fresh', contender: `manycore-process+${capture}` },
  against: [{ setting: 'kept', contender: `manycore-process+${capture}` }],
  atMost: 1.2,
});
const callerBar = (capture, says) => ({
  says,
  figure: 'callerCpuUs',
  of: { setting: 'waiting', contender: `manycore-process+${capture}` },
  atMost: 10,
});

export default {
  figures: {
    p50Us: micros('p50'),
    p99Us: micros('p99'),
    perSecond: perSecond('calls'),
    callerCpuUs: micros("CPU of the caller's thread per call"),
  },
  settings: {
    kept: { says: 'one function object, called again and again, its captured `let` changing' },
    fresh: { says: 'a new function object for each call, as an event handler makes it' },
    pinned: { says: 'kept, all on one core: what the software costs', cores: 1 },
    waiting: { says: `a new function object for each call, ${waitingCalls} calls waiting` },
    handler: {
      says: 'requests over one kept connection; the handler makes a new function object for each',
    },
  },
  runs: [
    ...runsOf('kept', [...captures, ...graphs, ...rivals]),
    ...runsOf('fresh', [...captures, ...graphs, ...rivals]),
    ...runsOf('pinned', [...captures, ...rivals]),
    ...runsOf('waiting', [...captures, ...rivals]),
    ...runsOf('handler', [...captures, ...rivals]),
  ],
  bars: [
    bar('kept', 'let', 0.6, 'closure with three captures, one `let`, against piscina without any'),
    bar('kept', 'constants', 0.6, 'closure with constants and imports only, against piscina'),
    bar('fresh', 'let', 0.8, 'the same with three captures, a new closure for each call'),
    bar(
      'fresh',
      'constants',
      0.8,
      'the same with constants and imports, a new closure for each call',
    ),
    freshBar('let', 'a new closure for each call against one that is kept: a `let`'),
    freshBar('this', 'the same for an arrow that uses `this`'),
    freshBar('shared', 'the same for functions that share a variable'),
    bar('handler', 'let', 1, 'a request whose handler calls a new closure, against piscina'),
    callerBar('let', "a new closure with a `let`: CPU of the caller's thread per call"),
    callerBar('constants', "the same with constants and imports: CPU of the caller's thread"),
  ],
  async measure({ contender, setting, scale }) {
    const opened = await openContender(contender);
    const windows = { warmMs: warmUpMs * scale, windowMs: 200 * scale };
    const { call, check } = callOf(contender, setting, opened);
    if (setting === 'waiting')
      return await countWaiting(call, { ...windows, windowMs: 1000 * scale });
    if (setting !== 'handler') return timeCalls(call, check, windows);
    const { request, close } = await serveCalls(call);
    const figures = await timeCalls(request, check, windows);
    close();
    return figures;
  },
};

/** Returns the call of turn `turn`, and a check of its answer. */
function callOf(contender, setting, opened) {
  const [, capture] = contender.split('+');
  if (capture === undefined) {
    return { call: opened.caller('add'), check: (got, turn) => expectSame(got, turn + 1) };
  }
  const { pool } = opened;
  const make = makers[capture]();
  let closure = make();
  return {
    call: (turn) => {
      if (setting !== 'kept' && setting !== 'pinned') closure = make();
      return pool.run(closure.run, turn);
    },
    check: (got, turn) => expectSame(got, closure.wanted(turn)),
  };
}

/** Before Node 23.9 a process cannot read the CPU time of one thread: there it is that of all its threads. */
const cpuUsage = process.threadCpuUsage ?? process.cpuUsage;

async function countWaiting(call, { warmMs, windowMs }) {
  await countCalls(call, waitingCalls, { warmMs: 0, windowMs: warmMs });
  let calls = 0;
  const counted = (turn) => {
    calls++;
    return call(turn);
  };
  const before = cpuUsage.call(process);
  const { perSecond } = await countCalls(counted, waitingCalls, { warmMs: 0, windowMs });
  const after = cpuUsage.call(process);
  const cpuUs = after.user + after.system - before.user - before.system;
  return { perSecond, callerCpuUs: cpuUs / calls };
}

/** Serves `call` over HTTP; `request(turn)` promises its answer, over one kept connection. */
async function serveCalls(call) {
  const server = createServer(async ({ url }, response) => {
    response.end(String(await call(Number(url.slice(1)))));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const socket = connect(server.address().port, '127.0.0.1').setEncoding('latin1').setNoDelay();
  await once(socket, 'connect');
  const request = async (turn) => {
    socket.write(`GET /${turn} HTTP/1.1\r\nHost: bench\r\n\r\n`);
    const [text] = await once(socket, 'data'); // Node writes the headers and such a body at once
    return Number(text.slice(text.lastIndexOf('\n') + 1));
  };
  return { request, close: () => socket.destroy() };
}

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
  /** An arrow of a method: the object of its `this` travels with its class. */
  this() {
    class Lamp {
      constructor() {
        this.scale = 3;
        this.label = 'lamp';
      }

      priceOf() {
        return (n) => n * this.scale + this.label.length;
      }
    }
    const lamp = new Lamp();
    return () => ({ run: lamp.priceOf(), wanted: (turn) => turn * 3 + 4 });
  },
  /** A function that assigns a variable of the closure. */
  shared() {
    return () => {
      let count = 1;
      const double = () => {
        count *= 2;
      };
      const run = (n) => {
        double();
        return n + count;
      };
      return { run, wanted: (turn) => turn + 2 };
    };
  },
  nothing() {
    return () => ({ run: (n) => n + 1, wanted: (turn) => turn + 1 });
  },
};
