// A slave of master-slave.js.
import { readFileSync } from 'node:fs';
import { similarity } from './similarity.js';

process.on('message', ({ start, chunk }) => {
  try {
    const answers = chunk.map(([a, b]) =>
      similarity(readFileSync(a, 'utf8'), readFileSync(b, 'utf8')),
    );
    process.send({ start, answers });
  } catch (error) {
    process.send({ start, error: { message: error.message, stack: error.stack } });
  }
});
process.on('disconnect', () => process.exit());
