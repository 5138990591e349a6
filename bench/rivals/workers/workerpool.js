import workerpool from 'workerpool';
import * as tasks from '../../lib/tasks.js';

workerpool.worker({
  ...tasks,
  touchAndMove(bytes) {
    return new workerpool.Transfer(tasks.touch(bytes), [bytes.buffer]);
  },
});
