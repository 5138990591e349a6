// Code in a worker for the adapters of piscina and tinypool: the worker file, loaded once, called by name.
'use strict';

const { pathToFileURL } = require('node:url');
const os = require('node:os');

const loaded = new Map();

/** Sets the state that piscina and tinypool give their workers. Runs once in each worker. */
exports.prepare = async ({ state, argv, niceIncrement, commonState, idVariable }) => {
  process.argv.push(...argv);
  if (niceIncrement > 0) os.setPriority(0, Math.min(19, os.getPriority(0) + niceIncrement));
  const workerId = Number(process.env[idVariable]);
  delete process.env[idVariable];
  if (commonState === undefined) process.__tinypool_state__ = { ...state, workerId };
  else Object.assign(require(commonState).commonState, state);
};

/** Calls the export `name` of a worker file with one value. Values marked by `move` are detached here. */
exports.handle = async (filename, name, value, movables) => {
  const handler = await handlerOf(filename, name);
  if (handler === undefined)
    throw new Error(`No handler function "${name}" exported from "${filename}"`);
  const result = await handler(value);
  const isMoved = typeof result === 'object' && result !== null && movables.transferable in result;
  return isMoved
    ? structuredClone(result[movables.value], { transfer: [result[movables.transferable]].flat() })
    : result;
};

/** Runs in a worker at its end: tinypool's `teardown` names an export of the worker file. */
exports.finish = async (filename, name) => {
  const teardown = await handlerOf(filename, name);
  await teardown?.();
};

async function handlerOf(filename, name) {
  const key = `${filename}/${name}`;
  if (!loaded.has(key)) loaded.set(key, await load(filename, name));
  return loaded.get(key);
}

async function load(filename, name) {
  const module = await import(pathToFileURL(filename).href);
  let handler = await (module.default ?? module);
  if (handler?.__esModule) handler = handler.default;
  if (name !== 'default') handler = handler?.[name] ?? module[name];
  return typeof handler === 'function' ? handler : undefined;
}
