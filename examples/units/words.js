// Counts words in two instances of a unit, each on an event loop of its own, and requests the counts over the
// bus.
import { bus, deploy } from 'manycore';

const separator = ' ';
const counter = await deploy(
  ({ bus, instance }) => {
    bus.consumer('count words', (message) => {
      const words = message.body.split(separator).length;
      message.reply({ words, by: instance });
    });
  },
  { instances: 2, name: 'counter' },
);

for (const text of ['use every core', 'while the loops stay responsive']) {
  const { body } = await bus.request('count words', text);
  console.log(`${body.words} words, counted by instance ${body.by}`);
}
await counter.undeploy();
