// One of two workers that communicate over a MessageChannel.
import { parentPort, workerData } from 'node:worker_threads';
import { countOneWay, largeBytes, timeLarge, timeRequests } from './measure.js';

const { end, port } = workerData;

/** Messages are numbers to be counted, `[number]`, to be answered, or bytes, of which the first is. */
function serve() {
  let count = 0;
  port.on('message', (message) => {
    if (typeof message === 'number') count += 1;
    else if (message instanceof Uint8Array) port.postMessage(message[0]);
    else port.postMessage(message[0] === 'counted' ? count : message[0]);
  });
}

function drive() {
  let resolveAnswer;
  const post = (message) =>
    new Promise((resolve) => {
      resolveAnswer = resolve;
      port.postMessage(message);
    });
  const ask = (question) => post([question]);
  port.on('message', (answer) => resolveAnswer(answer));
  const oneWay = {
    send: (number) => {
      port.postMessage(number);
      return true;
    },
    drained: () => undefined,
    counted: () => ask('counted'),
  };
  const large = (ms) => timeLarge(post, new Uint8Array(largeBytes), ms); // always copied
  const measures = {
    request: (ms) => timeRequests(ask, ms),
    'one-way': (ms) => countOneWay(oneWay, ms),
    'large-shared': large,
    'large-copied': large,
  };
  parentPort.on('message', async ({ kind, ms }) => {
    parentPort.postMessage(await measures[kind](ms));
  });
  parentPort.postMessage('ready');
}

if (end === 'server') serve();
else drive();
