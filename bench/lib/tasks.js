// The functions that workers run, plain ones, so that every contender runs the same code. Pools that need a
// file load this one; manycore gets the functions themselves.

/** A call that does nothing but answer a number. */
export function add(n) {
  return n + 1;
}

/** Answers a small nested object of the same size as its argument. */
export function answerObject(order) {
  return {
    id: order.id + 1,
    name: order.name,
    price: order.price,
    tags: order.tags,
    address: order.address,
    isPaid: !order.isPaid,
  };
}

/** Changes the first byte, so that a lazy echo would be noticed, and answers the same memory. */
export function touch(bytes) {
  bytes[0] = (bytes[0] + 1) & 255;
  return bytes;
}

/** Returns 8 MB of one byte, like a decoded picture. */
export function filled(byte) {
  return new Uint8Array(8_000_000).fill(byte);
}

/** Takes `ms` without computing. */
export function sleepMs(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Pure computing; `fib(32)` is about 15 ms. */
export function fib(n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

/** Computes for `turns` turns of a loop that the compiler cannot drop. */
export function spin(turns) {
  let sum = turns;
  for (let turn = 0; turn < turns; turn++) sum = (Math.imul(sum, 1_664_525) + turn) | 0;
  return sum;
}

/** About 1 µs of computing for one number. */
export function mix(value) {
  return spin(1000 + (value & 7));
}

/** Changes every byte of a copy; answers that. */
export function invert(bytes) {
  const answer = new Uint8Array(bytes.length);
  for (let at = 0; at < bytes.length; at++) answer[at] = bytes[at] ^ 255;
  return answer;
}

/** Returns the timers and immediates that a worker has armed besides its work. */
export function countTimers() {
  const kinds = process.getActiveResourcesInfo();
  return kinds.filter((kind) => kind === 'Timeout' || kind === 'Immediate').length;
}
