// The chat on one machine: several instances, one port, and guests of all kinds. On a cluster it is tested
// in test/cluster/examples.slow.test.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { waitFor } from '../support/index.js';
import { skip, startLoops } from '../units/loops.js';
import { allSee, chat, deliveryErrors, Guest, guestsAtAll, startChat } from './chatting.js';

const four = ['--instances', '4', '--processes', '2', '--loops', '2'];
const goingAway = 1001;

/** A chat of one instance. */
async function startOne(t: TestContext, config: Readonly<Record<string, unknown>> = {}) {
  return await startChat(t, ['--instances', '1', '--processes', '1', '--loops', '1'], config);
}

test('guests of all instances receive messages of each other, once and in order', {
  skip,
}, async (t) => {
  const { child, port } = await startChat(t, four);
  const guests = await guestsAtAll(t, [port], 4);
  await allSee(
    guests,
    guests.map(({ name }) => name),
  );
  assert.deepEqual(await deliveryErrors(guests), []);
  child.kill('SIGTERM');
  const codes = await Promise.all(guests.map(({ closed }) => closed));
  assert.deepEqual(codes, [goingAway, goingAway, goingAway, goingAway]);
  assert.deepEqual(await once(child, 'exit'), [0, null]);
});

test('messages stay in their room, and a guest who changes rooms has left the other', {
  skip,
}, async (t) => {
  const { port } = await startChat(t, four);
  const [anna, bert, carl] = await Promise.all(
    ['anna', 'bert', 'carl'].map((name) => Guest.open(t, port, name)),
  );
  assert.ok(anna !== undefined && bert !== undefined && carl !== undefined);
  await Promise.all([anna.enter('lobby'), bert.enter('lobby'), carl.enter('kitchen')]);
  await allSee([anna, bert], ['anna', 'bert']);
  await allSee([carl], ['carl']);
  bert.say('in the lobby');
  await bert.enter('kitchen');
  await allSee([anna], ['anna']);
  await allSee([bert, carl], ['bert', 'carl']);
  bert.say('in the kitchen');
  await waitFor(() => carl.from('bert').length > 0 && anna.from('bert').length > 0);
  assert.deepEqual(carl.from('bert'), ['in the kitchen']);
  assert.deepEqual(anna.from('bert'), ['in the lobby']);
  bert.socket.close();
  await allSee([carl], ['carl']);
});

test('names of a process that was killed are forgotten, and its guests come back', {
  skip,
}, async (t) => {
  const { port } = await startChat(t, four, { beatMs: 200 });
  const guests = await guestsAtAll(t, [port], 4);
  const killed = guests[0]?.pid ?? assert.fail('nobody came');
  const others = guests.filter(({ pid }) => pid !== killed);
  assert.equal(others.length, 2);
  process.kill(killed, 'SIGKILL');
  await allSee(
    others,
    others.map(({ name }) => name),
  );
  const again = await guestsAtAll(t, [port], 4); // its instances are started again elsewhere
  await allSee(
    [...again, ...others],
    [...again, ...others].map(({ name }) => name),
  );
});

test('an undeployed instance closes its connections, and the others go on', { skip }, async (t) => {
  const loops = startLoops(t);
  const deployment = await loops.deploy(chat, { instances: 2, config: { port: 0 } });
  const [address] = await loops.addresses();
  const { port } = typeof address === 'object' ? address : assert.fail('no port');
  const [first, second] = await guestsAtAll(t, [port], 2);
  const [stays, goes] = first?.place.endsWith(' 0') ? [first, second] : [second, first];
  assert.ok(stays !== undefined && goes !== undefined);
  await allSee([stays, goes], [stays.name, goes.name]);
  goes.say('goodbye');
  await waitFor(() => stays.from(goes.name).length > 0);
  await deployment.scale(1);
  assert.equal(await goes.closed, goingAway);
  await allSee([stays], [stays.name]);
  const back = await Guest.open(t, port, 'back again');
  assert.equal(back.place, stays.place);
  await back.enter('lobby');
  back.say('hello');
  await waitFor(() => stays.from('back again').includes('hello'));
});

const wrong: readonly [string, unknown, string][] = [
  ['a word that is no JSON', 'hello', 'this is no JSON: send {"enter", "name"} or {"say"}'],
  ['JSON without a message', 'null', 'send {"enter", "name"} or {"say"}'],
  [
    'a room that is not there',
    { enter: 'cellar', name: 'anna' },
    'there is no room "cellar": enter one of lobby, kitchen, garden',
  ],
  ['a room with the name of a method', { enter: '__proto__' }, 'there is no room "__proto__"'],
  ['nobody', { enter: 'lobby' }, 'a name is missing: write one'],
  ['a name of blanks', { enter: 'lobby', name: ' \n ' }, 'a name is missing: write one'],
  ['a name that is a number', { enter: 'lobby', name: 7 }, 'a name is missing: write one'],
  [
    'a long name',
    { enter: 'lobby', name: 'a'.repeat(25) },
    'a name of 25 characters is too long: 24 is the limit',
  ],
  ['a message before a room', { say: 'hello' }, 'enter a room first'],
  ['an empty message', { say: '' }, 'a message is missing: write one'],
  [
    'a long message',
    { say: 'a'.repeat(1001) },
    'a message of 1001 characters is too long: 1000 is the limit',
  ],
];

test('an invalid message is answered in one sentence, and changes nothing', { skip }, async (t) => {
  const { port } = await startOne(t);
  const guest = await Guest.open(t, port, 'anna');
  for (const [what, input, sentence] of wrong) {
    guest.messages.length = 0;
    guest.socket.send(typeof input === 'string' ? input : JSON.stringify(input));
    await waitFor(() => guest.messages.length > 0);
    const error = guest.messages[0]?.error ?? assert.fail(`${what} is answered with no error`);
    assert.ok(error.startsWith(sentence), `${what} is answered with ${error}`);
    assert.equal(error.split('\n').length, 1);
  }
  await guest.enter('lobby');
  await allSee([guest], ['anna']);
  guest.say('a'.repeat(1000));
  await waitFor(() => guest.from('anna').length === 1);
  guest.socket.send('x'.repeat(2 ** 20));
  const tooBig = 1009;
  assert.equal(await guest.closed, tooBig);
});

test('a guest who reads too slowly is dropped, and nobody else', {
  skip,
  timeout: 60_000,
}, async (t) => {
  const { port } = await startOne(t, { maxBehindBytes: 2 ** 16 });
  const fast = await Guest.open(t, port, 'fast');
  const slow = await Guest.open(t, port, 'slow');
  await Promise.all([fast.enter('lobby'), slow.enter('lobby')]);
  await allSee([fast, slow], ['fast', 'slow']);
  slow.socket.pause();
  let waves = 0;
  while (fast.names.includes('slow')) {
    waves += 1;
    for (let each = 0; each < 50; each += 1) fast.say('a'.repeat(1000)); // less than may wait
    fast.say(`wave ${waves}`);
    await fast.receives(`wave ${waves}`);
  }
  assert.deepEqual(fast.names, ['fast']);
  assert.equal(fast.from('fast').length, waves * 51);
  slow.socket.resume();
  const lost = 1006;
  assert.equal(await slow.closed, lost);
});

test('the page is served, and nothing beside it', { skip }, async (t) => {
  const { port } = await startOne(t);
  const get = async (path: string) => await fetch(`http://127.0.0.1:${port}${path}`);
  assert.match(await (await get('/')).text(), /<script type="module" src="page\.js">/);
  assert.match(await (await get('/page.js')).text(), /new WebSocket\(/);
  assert.match(await (await get('/page.css')).text(), /color-scheme: light dark/);
  assert.equal((await get('/%2e%2e/chat.js')).status, 404);
});
