// child_process.fork by hand, with both of its serializers: the plain Node way for processes.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { makeCalls } from './calls.js';

const file = fileURLToPath(new URL('./workers/bare-fork.js', import.meta.url));

/** `kind`: 'bare-fork-json' or 'bare-fork-advanced'. */
export function open(kind, { workers }) {
  const calls = makeCalls();
  const serialization = kind === 'bare-fork-json' ? 'json' : 'advanced';
  const children = Array.from({ length: workers }, () => {
    const child = fork(file, { serialization });
    child.on('message', calls.settle);
    child.on('error', calls.fail);
    return child;
  });
  let next = 0;
  const turn = () => {
    next = next + 1 === workers ? 0 : next + 1;
    return children[next];
  };
  return {
    caller: (name) => (argument) => calls.begin((call) => turn().send([call, name, argument])),
    close: () => {
      for (const child of children) child.kill('SIGKILL');
    },
  };
}
