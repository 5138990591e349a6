// The examples on a cluster: several programs on this machine stand for as many machines.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { allSee, deliveryErrors, Guest, guestsAtAll, startChat } from '../examples/chatting.js';
import { runCommand } from '../faults/child.js';
import { waitFor } from '../support/index.js';
import { skip as noBinary } from '../units/loops.js';
import { skip as noServer, startServer } from './server.js';

const skip = noServer || noBinary;
const two = ['--instances', '2', '--processes', '1', '--loops', '2'];

test('chat: guests of three programs get all messages, once and in order', { skip }, async (t) => {
  const { url } = await startServer(t);
  const start = () => startChat(t, [...two, '--cluster', url], { beatMs: 200 });
  const programs = await Promise.all([start(), start(), start()]);
  const ports = programs.map(({ port }) => port);
  const guests = await guestsAtAll(t, ports, 6);
  const namesOf = (some: readonly Guest[]) => some.map(({ name }) => name);
  await allSee(guests, namesOf(guests));
  assert.deepEqual(await deliveryErrors(guests), []);

  // One program ends: its guests are notified, and go elsewhere.
  const [ending, killed, last] = programs;
  assert.ok(ending !== undefined && killed !== undefined && last !== undefined);
  const at = (port: number) => guests.filter(({ socket }) => socket.url.endsWith(`:${port}/`));
  ending.child.kill('SIGTERM');
  const goingAway = 1001;
  assert.deepEqual(await Promise.all(at(ending.port).map(({ closed }) => closed)), [
    goingAway,
    goingAway,
  ]);
  assert.deepEqual(await once(ending.child, 'exit'), [0, null]);
  const back = await Guest.open(t, last.port, 'back again');
  await back.enter('lobby');
  const rest = [...at(killed.port), ...at(last.port), back];
  await allSee(rest, namesOf(rest));

  // One is killed: without any notice its guests are forgotten as well.
  killed.child.kill('SIGKILL');
  const left = [...at(last.port), back];
  await allSee(left, namesOf(left));
});

test('chat: messages wait while the NATS server is away, and then arrive', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const start = () => startChat(t, [...two, '--cluster', server.url], { beatMs: 200 });
  const [here, there] = await Promise.all([start(), start()]);
  const anna = await Guest.open(t, here.port, 'anna');
  const bert = await Guest.open(t, there.port, 'bert');
  await Promise.all([anna.enter('lobby'), bert.enter('lobby')]);
  await allSee([anna, bert], ['anna', 'bert']);
  await server.kill();
  await allSee([anna], ['anna']); // bert has been silent for too long
  await allSee([bert], ['bert']);
  const texts = ['are you there?', 'nobody answers', 'I wait'];
  for (const text of texts) anna.say(text);
  await server.restart();
  // Others may miss it: a NATS server stores nothing for clients that are not back yet.
  await waitFor(() => anna.from('anna').length === texts.length);
  assert.deepEqual(anna.from('anna'), texts);
  await allSee([anna, bert], ['anna', 'bert']);
  anna.say('there you are');
  await bert.receives('there you are');
  await anna.receives('there you are');
});

const verticles = [process.execPath, 'examples/verticles/main.js'];

test('verticles: the three units measure in three programs', { skip }, async (t) => {
  const { url } = await startServer(t);
  const run = await runCommand(t, [...verticles, '--cluster', url, '0.5', '2']);
  assert.equal(run.stderr, '');
  assert.match(run.stdout, /^instances .* clustered .*\n +2( +[1-9]\d*){3}\n$/);
  assert.equal(run.status, 0);
});

for (const [what, args] of [
  ['a NATS server that is not there', ['--cluster', 'nats://127.0.0.1:1', '0.1', '1']],
  ['no NATS server', ['--cluster']],
] as const) {
  test(`verticles: with ${what} it prints how to start one`, { skip: noBinary }, async (t) => {
    const run = await runCommand(t, [...verticles, ...args]);
    assert.match(run.stderr, /^verticles: .*`nats-server` starts one.*\n$/);
    assert.deepEqual([run.status, run.stdout], [2, '']);
  });
}
