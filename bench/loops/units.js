// The two ends of a measured bus, as units: one answers, or counts, the messages of the other.
import { shared } from 'manycore';
import { countOneWay, largeBytes, timeLarge, timeRequests } from './measure.js';

export const server = ({ bus }) => {
  let count = 0;
  bus.consumer('echo', (message) => message.reply(message.body));
  bus.consumer('count', () => {
    count += 1;
  });
  bus.consumer('first', (message) => message.reply(message.body[0]));
  bus.consumer('counted', (message) => message.reply(count));
};

export const client = ({ bus }) => {
  const request = async (number) => (await bus.request('echo', number)).body;
  const oneWay = {
    send: (number) => bus.send('count', number),
    drained: () => bus.drained(),
    counted: async () => (await bus.request('counted', 0)).body,
  };
  const first = async (bytes) => (await bus.request('first', bytes)).body;
  const measures = {
    request: (ms) => timeRequests(request, ms),
    'one-way': (ms) => countOneWay(oneWay, ms),
    'large-shared': (ms) => timeLarge(first, shared(largeBytes), ms),
    'large-copied': (ms) => timeLarge(first, Buffer.alloc(largeBytes), ms),
  };
  bus.consumer('measure', async (message) => {
    const { kind, ms } = message.body;
    message.reply(await measures[kind](ms));
  });
};
