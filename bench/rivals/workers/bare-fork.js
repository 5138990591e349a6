import * as tasks from '../../lib/tasks.js';

process.on('message', ([call, name, argument]) => {
  process.send([call, tasks[name](argument)]);
});
