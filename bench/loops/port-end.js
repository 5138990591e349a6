// One of two workers that talk over a MessageChannel.
import { parentPort, workerData } from 'node:worker_threads';
import { countOneWay, timeRequests } from './measure.js';

const { end, port } = workerData;

/** Messages are numbers to be counted, or `[number]`, to be answered. */
function serve() {
  let count = 0;
  port.on('message', (message) => {
    if (typeof message === 'number') count += 1;
    else port.postMessage(message[0] === 'counted' ? count : message[0]);
  });
}

function drive() {
  let resolveAnswer;
  const ask = (question) =>
    new Promise((resolve) => {
      resolveAnswer = resolve;
      port.postMessage([question]);
    });
  port.on('message', (answer) => resolveAnswer(answer));
  const oneWay = {
    send: (number) => {
      port.postMessage(number);
      return true;
    },
    drained: () => undefined,
    counted: () => ask('counted'),
  };
  parentPort.on('message', async ({ kind, ms }) => {
    parentPort.postMessage(
      await (kind === 'request' ? timeRequests(ask, ms) : countOneWay(oneWay, ms)),
    );
  });
  parentPort.postMessage('ready');
}

if (end === 'server') serve();
else drive();
