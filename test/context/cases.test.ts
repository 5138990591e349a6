import { after, test } from 'node:test';
import { cases } from './cases.js';
import { Peer } from './harness.js';

const peer = new Peer();
after(() => peer.close());

for (const [title, check] of cases) {
  test(`travels: ${title}`, () => check((fn, ...args) => peer.run(fn, ...args)));
}
