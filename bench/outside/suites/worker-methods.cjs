// Replaces workerpool's `worker.js` in a worker: the methods of a worker file, and their arguments.
'use strict';

const { fileURLToPath } = require('node:url');
const { report, taskSignal } = require(fileURLToPath(process.env.OUTSIDE_MANYCORE));

const methods = { methods: () => Object.keys(methods), run: (fn, args) => exports.apply(fn, args) };

let onTerminate = () => {};

/** Called by a worker file to offer its methods. */
exports.add = (added, options) => {
  Object.assign(methods, added);
  if (options?.onTerminate) onTerminate = options.onTerminate;
};

exports.emit = (payload) => void report(payload);

/** Runs in a worker at its end. */
exports.end = () => onTerminate(0);

/** Runs in a worker: calls a method of the worker file, which is loaded at first. */
exports.call = (script, method, args) => {
  if (script !== undefined) require(script);
  if (typeof methods[method] !== 'function') throw new Error(`Unknown method "${method}"`);
  return exports.apply(methods[method], args);
};

/** Returns the content of workerpool's `Transfer`: a result hands over its ports anyway. */
const messageOf = (result) => (result?.constructor?.name === 'Transfer' ? result.message : result);

/** Calls `fn` with workerpool's arguments for functions; its abort listeners end an aborted task. */
exports.apply = (fn, args) => {
  const listeners = [];
  const self = {
    worker: { addAbortListener: (listener) => listeners.push(listener), emit: exports.emit },
  };
  const aborted = new Promise((_resolve, reject) => {
    taskSignal().addEventListener('abort', () => {
      if (listeners.length > 0)
        Promise.all(listeners.map((listener) => listener())).then(
          () => reject(new Error('aborted')),
          reject,
        );
    });
  });
  return Promise.race([fn.apply(self, args ?? []), aborted]).then(messageOf);
};
