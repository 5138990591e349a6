import { parentPort } from 'node:worker_threads';
import * as tasks from '../../lib/tasks.js';

/** Tasks whose result is transferred. */
const moving = { touchAndMove: tasks.touch, filled: tasks.filled };

parentPort.on('message', ([call, name, argument]) => {
  const move = moving[name];
  if (move === undefined) {
    parentPort.postMessage([call, tasks[name](argument)]);
  } else {
    const bytes = move(argument);
    parentPort.postMessage([call, bytes], [bytes.buffer]);
  }
});
