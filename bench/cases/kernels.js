// Does a function compute in a worker as fast as at home, where it was written?
import { Pool } from 'manycore';
import { millis, runsOf } from '../lib/figures.js';
import { expectSame } from '../lib/measure.js';
import { add } from '../lib/tasks.js';

const limit = 1.02;

// Kernels of some milliseconds, each with what it captures. Not exported: they travel as their text.

const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));

const isEven = (n) => n === 0 || isOdd(n - 1);
const isOdd = (n) => n !== 0 && isEven(n - 1);

class Particle {
  constructor(at) {
    this.at = at;
    this.speed = 1;
  }
  step(time) {
    this.at += this.speed * time;
    return this;
  }
  get energy() {
    return this.speed * this.speed + this.at;
  }
}

const factor = 7;
const modulus = 1_000_003;
let rate = 3;
const samples = new Float64Array(4096).fill(1.5);
const separator = ', ';
const words = Array.from({ length: 1000 }, (_, index) => `word ${index * 7919}-${index}`);
const pattern = /(\d+)-(\d+)/;
const keyOf = (index) => (index * 31) % 4099;
const prime = 2n ** 127n - 1n;

const kernels = {
  recursion: () => fib(27),
  group: () => {
    let count = 0;
    for (let n = 0; n < 1000; n++) if (isEven(n)) count++;
    return count;
  },
  methods: () => {
    let sum = 0;
    for (let index = 0; index < 1_000_000; index++) {
      const particle = new Particle(index);
      sum += particle.step(0.5).step(0.25).energy;
    }
    return sum;
  },
  constants: () => {
    let sum = 0;
    for (let index = 0; index < 500_000; index++) sum = (sum * factor + index) % modulus;
    return sum;
  },
  variables: () => {
    let sum = 0;
    for (let index = 0; index < 500_000; index++) sum = (sum * rate + index) % modulus;
    return sum;
  },
  imports: () => {
    let sum = 0;
    for (let index = 0; index < 2_000_000; index++) sum = add(sum ^ index);
    return sum;
  },
  typed: () => {
    let sum = 0;
    for (let turn = 0; turn < 500; turn++) {
      for (let index = 0; index < samples.length; index++) sum += samples[index] * factor;
    }
    return sum;
  },
  strings: () => {
    let length = 0;
    for (let turn = 0; turn < 50; turn++) {
      let text = '';
      for (const word of words) text += word + separator;
      length += text.length + text.charCodeAt(turn * 100);
    }
    return length;
  },
  patterns: () => {
    let sum = 0;
    for (let turn = 0; turn < 20; turn++) {
      for (const word of words) sum += pattern.exec(word)[1].length;
    }
    return sum;
  },
  maps: () => {
    const counts = new Map();
    for (let index = 0; index < 100_000; index++) {
      const key = keyOf(index);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return counts.size;
  },
  bigints: () => {
    let value = 3n;
    for (let turn = 0; turn < 10_000; turn++) value = (value * value + 1n) % prime;
    return Number(value & 0xffffn);
  },
};

const says = {
  recursion: 'a recursive function',
  group: 'two functions that call each other',
  methods: 'methods and instances of a class',
  constants: 'captured constants in a loop',
  variables: 'a captured `let` that the program assigns between calls',
  imports: 'calls of an imported function',
  typed: 'a captured typed array',
  strings: 'strings put together',
  patterns: 'a captured regular expression',
  maps: 'a Map, and a captured function for its keys',
  bigints: 'BigInt arithmetic',
};

/**
 * Returns a function that calls `kernel` several times: its result, and the least CPU time of a call in
 * ms. CPU instead of time, because the caller and other programs use the cores as well.
 */
const timerOf = (kernel) => (calls) => {
  let leastUs = Number.POSITIVE_INFINITY;
  let result;
  for (let call = 0; call < calls; call++) {
    const before = process.cpuUsage();
    result = kernel();
    const { user, system } = process.cpuUsage(before);
    leastUs = Math.min(leastUs, user + system);
  }
  return { result, leastMs: leastUs / 1000 };
};

export default {
  figures: { leastMs: millis('CPU per call') },
  settings: Object.fromEntries(
    Object.keys(kernels).map((name) => [
      name,
      { says: `${says[name]}, at home and in a worker process in turns` },
    ]),
  ),
  rounds: 9,
  isTogether: true,
  runs: Object.keys(kernels).flatMap((setting) => runsOf(setting, ['home', 'worker'])),
  bars: Object.keys(kernels).map((setting) => ({
    says: `${says[setting]}: CPU in a worker against home`,
    figure: 'leastMs',
    of: { setting, contender: 'worker' },
    against: [{ setting, contender: 'home' }],
    atMost: limit,
  })),
  async measure({ setting, scale }) {
    const pool = new Pool({ worker: 'process', size: 1 });
    const timed = timerOf(kernels[setting]);
    const least = { home: Number.POSITIVE_INFINITY, worker: Number.POSITIVE_INFINITY };
    const turns = Math.round(24 * scale);
    for (let turn = 0; turn < turns; turn++) {
      rate = 3 + (turn % 2); // a new value for the next call
      const home = timed(10);
      const worker = await pool.run(timed, 10);
      expectSame(worker.result, home.result);
      least.home = Math.min(least.home, home.leastMs);
      least.worker = Math.min(least.worker, worker.leastMs);
    }
    return { home: { leastMs: least.home }, worker: { leastMs: least.worker } };
  },
};
