import { parentPort } from 'node:worker_threads';
import * as tasks from '../../lib/tasks.js';

parentPort.on('message', ([call, name, argument]) => {
  if (name === 'touchAndMove') {
    const bytes = tasks.touch(argument);
    parentPort.postMessage([call, bytes], [bytes.buffer]);
  } else {
    parentPort.postMessage([call, tasks[name](argument)]);
  }
});
