// In place of workerpool's `worker.js`, in a host: the methods of a worker file, and what they are called with.
'use strict';

const methods = { methods: () => Object.keys(methods), run: (fn, args) => fn(...args) };

/** What a worker file calls to offer its methods. */
exports.add = (added, options) => {
  Object.assign(methods, added);
  if (options?.onTerminate) process.on('exit', options.onTerminate);
};

exports.emit = () => {
  throw new Error('a task has no channel to its caller here');
};

/** Runs in a host: calls a method of the worker file, which is loaded at first. */
exports.call = async (script, method, args) => {
  if (script !== undefined) require(script);
  if (typeof methods[method] !== 'function') throw new Error(`Unknown method "${method}"`);
  return await methods[method].apply(methods[method], args ?? []);
};
