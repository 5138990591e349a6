// Modes: the ways to decode a picture beside a server. A mode is a module with `decode(bytes)`, which returns
// an image `{ width, height, data }` (RGBA bytes) or a promise of one. It has `close()` if it must end
// something. Half of this example is to compare serialized.js, threads.js and parallel.js side by side; their
// figures are the other half. `idle` decodes nothing and is the yardstick.

/** Every mode in the order in which it is measured, with the line that explains it to a visitor. */
export const modes = {
  idle: { description: 'nothing is decoded' },
  serialized: { description: 'decoded in the event loop of the server', file: './serialized.js' },
  threads: { description: 'decoded in a worker thread written by hand', file: './threads.js' },
  parallel: {
    description: 'decoded through parallel(…) in another process',
    file: './parallel.js',
  },
};

/** Loads a mode: `{ decode, close }`; `decode` is `undefined` for `idle`. Modes load when first used. */
export async function openMode(name) {
  const { file } = modes[name];
  const { decode, close = async () => {} } = file === undefined ? {} : await import(file);
  return { name, decode, close };
}
