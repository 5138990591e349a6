import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseLoadOutput, parseResult } from '../../src/tune/load/load-output.js';

const wrkWithLatency = `Running 1s test @ http://127.0.0.1:3999/
  1 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   324.96us  746.36us  11.39ms   91.61%
    Req/Sec    63.01k    27.31k   81.83k    80.00%
  Latency Distribution
     50%   95.00us
     75%  122.00us
     90%  820.00us
     99%    3.46ms
  62455 requests in 1.00s, 7.39MB read
Requests/sec:  62260.87
Transfer/sec:      7.36MB
`;

test('the report of wrk --latency is read, with its units', () => {
  assert.deepEqual(parseLoadOutput(wrkWithLatency), {
    requests: 62455,
    errors: 0,
    seconds: 1,
    p50Ms: 0.095,
    p99Ms: 3.46,
  });
});

test('without --latency wrk reports no percentiles', () => {
  const text = wrkWithLatency.replace(/ {2}Latency Distribution[^]*99%.*\n/, '');
  const result = parseLoadOutput(text);
  assert.deepEqual([result?.requests, result?.p50Ms, result?.p99Ms], [62455, undefined, undefined]);
});

test("wrk's failed answers count as errors, and not as requests", () => {
  const text = `${wrkWithLatency}  Socket errors: connect 1, read 20, write 0, timeout 3
  Non-2xx or 3xx responses: 455
`;
  const { requests, errors } = parseLoadOutput(text) ?? {};
  assert.deepEqual([requests, errors], [62000, 479]);
});

test('wrk of more than a minute is read', () => {
  const text = wrkWithLatency.replace('1.00s', '1.50m').replace('3.46ms', '2.00s');
  const { seconds, p99Ms } = parseLoadOutput(text) ?? {};
  assert.deepEqual([seconds, p99Ms], [90, 2000]);
});

const autocannon = {
  url: 'http://127.0.0.1:3999/',
  duration: 1.01,
  errors: 2,
  timeouts: 1,
  non2xx: 17,
  latency: { average: 0.06, p50: 0, p97_5: 1, p99: 2 },
  requests: { average: 35632, total: 35617 },
};

for (const [how, text] of [
  ['on one line', `${JSON.stringify(autocannon)}\n`],
  ['on many lines', JSON.stringify(autocannon, undefined, 2)],
  ['after other lines', `Running 1s test\n${JSON.stringify(autocannon)}\n`],
] as const) {
  test(`autocannon's JSON is read ${how}`, () => {
    assert.deepEqual(parseLoadOutput(text), {
      requests: 35600,
      errors: 19,
      seconds: 1.01,
      p50Ms: 0,
      p99Ms: 2,
    });
  });
}

test('a line of JSON of one’s own is read, the last one', () => {
  const text = '{"requests": 1}\nhello\n{"requests": 120, "seconds": 2, "p99Ms": 4.5}\nbye\n';
  const { requests, seconds, p99Ms, p50Ms } = parseLoadOutput(text) ?? {};
  assert.deepEqual([requests, seconds, p99Ms, p50Ms], [120, 2, 4.5, undefined]);
});

for (const text of ['', 'hello', '{', '[]', 'null', '{"requests": "many"}', '{"requests": -1}']) {
  test(`${JSON.stringify(text)} has no result`, () => {
    assert.equal(parseLoadOutput(text), undefined);
  });
}

test('the result of a script needs requests', () => {
  assert.deepEqual(parseResult({ requests: 5, p50Ms: Number.NaN })?.p50Ms, undefined);
  assert.equal(parseResult({ p50Ms: 5 }), undefined);
  assert.equal(parseResult(undefined), undefined);
});
