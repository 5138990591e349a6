// Shared objects as variables of a history: each has a number, and its value is a version.

import type { Recording } from './programs.js';

/** Texts: how the objects are made, how one is read and set. `before`: its value before that. */
interface Register {
  readonly shared: string;
  readonly read: string;
  readonly write: string;
  /** Outside of transactions. */
  readonly worker?: string;
}

/** Transactions that read some of the variables, set some of these, and read some again. */
export function transactionsOn(
  { shared, read, write, worker = '' }: Register,
  variables = 6,
  transactions = 3000,
): Recording {
  return {
    shared: `const variables = ${variables}; ${shared}`,
    worker: `
      const torn = -1; // of no transaction
      ${worker}
      const read = (at) => { ${read} };
      const write = (at, before, value) => { ${write} };`,
    choose: `
      const order = Array.from({ length: variables }, (_, at) => at).sort(() => Math.random() - 0.5);
      const used = order.slice(0, 1 + random(variables));
      const writes = new Set(used.filter(() => Math.random() < 0.4));
      const again = used.filter(() => Math.random() < 0.4);`,
    attempt: `
      const values = new Map();
      for (const at of used) {
        values.set(at, read(at));
        run.reads.push(versionOf(at, values.get(at)));
        think();
      }
      for (const at of writes) {
        const { count } = versionOf(at, values.get(at));
        const value = (count + 1) * ids + id;
        write(at, values.get(at), value);
        run.writes.push(versionOf(at, value));
      }
      for (const at of again) run.again.push(versionOf(at, read(at)));`,
    transactions,
  };
}

/** A key of the list is a variable, its version and who set it. */
export const list: Register = {
  shared: `
    const span = 2 ** 40;
    const shared = tlist();
    for (let at = 0; at < variables; at++) shared.add(at * span);`,
  // A search for one key, as long as its version is the last one that this worker has met.
  worker: 'const met = new Map();',
  read: `
    const guess = met.get(at) ?? 0;
    if (shared.has(at * span + guess)) return guess;
    const found = shared.keys().filter((key) => Math.floor(key / span) === at);
    const value = found.length === 1 ? found[0] % span : torn;
    met.set(at, value);
    return value;`,
  write: `
    const isThere = shared.delete(at * span + before);
    if (!isThere || !shared.add(at * span + value)) run.reads.push(versionOf(at, torn));
    met.set(at, value);`,
};

/**
 * A variable is a region of a map with room for 128 keys. Each version has other keys, all with the value of
 * the variable: 1 to 6 of them, or 30 to 89 for every fourth version. So leaves divide, become empty and go away.
 * Odd versions have the first key of the region, even ones the last: two look-ups give the version.
 */
function region({ make, list }: { readonly make: string; readonly list: string }): Register {
  return {
    shared: `
      const width = 128;
      const shared = ${make};`,
    worker: `
      const keysOf = (at, value) => {
        const count = Math.floor(value / ids);
        if (count === 0) return [];
        const size = count % 4 === 0 ? 30 + (count * 7) % 60 : 1 + count % 6;
        const rest = Array.from({ length: size - 1 }, (_, index) => 1 + (count * 31 + index) % (width - 2));
        const offsets = [count % 2 === 1 ? 0 : width - 1, ...rest].sort((one, other) => one - other);
        return offsets.map((offset) => at * width + offset);
      };
      const textOf = (value) => value % 3 === 0 ? String(value).padStart(100) : value; // some of their own variable
      const list = (at) => { ${list} };
      const readOne = (at) => Number(shared.get(at * width) ?? shared.get((at + 1) * width - 1) ?? 0);
      const readAll = (at) => {
        const entries = list(at);
        const value = Number(entries[0]?.[1] ?? 0);
        const isWhole = entries.map(([key]) => key).join() === keysOf(at, value).join();
        return isWhole && entries.every(([, each]) => Number(each) === value) ? value : torn;
      };`,
    read: 'return Math.random() < 0.5 ? readOne(at) : readAll(at);',
    write: `
      const keys = keysOf(at, value);
      for (const key of keysOf(at, before)) {
        if (!keys.includes(key) && !shared.delete(key)) run.reads.push(versionOf(at, torn));
      }
      for (const key of keys) shared.set(key, textOf(value));`,
  };
}

/** Maps with some hundred keys. */
export const regions = {
  'a sorted map': region({
    make: 'tsortedMap()',
    list: `
      const range = { from: at * width, to: (at + 1) * width };
      if (Math.random() < 0.5) return shared.entries(range);
      return shared.entries({ ...range, reverse: true }).reverse();`,
  }),
  'a map': region({
    make: 'tmap()',
    list: `
      const isOfIt = ([key]) => Math.floor(key / width) === at;
      return shared.entries().filter(isOfIt).sort(([one], [other]) => one - other);`,
  }),
};

export const registers = {
  variables: {
    shared: 'const shared = Array.from({ length: variables }, () => tvar(0));',
    read: 'return shared[at].get();',
    write: 'shared[at].set(value);',
  },
  'a map': {
    shared: 'const shared = tmap();',
    read: 'return shared.get(at) ?? 0;',
    write: 'shared.set(at, value);',
  },
  'a sorted map': {
    shared: 'const shared = tsortedMap();',
    read: 'return shared.get(at) ?? 0;',
    write: 'shared.set(at, value);',
  },
  'large values of a map': {
    shared: 'const shared = tmap();',
    read: 'return Number(shared.get(at) ?? 0);',
    write: 'shared.set(at, String(value).padStart(300));',
  },
} satisfies Readonly<Record<string, Register>>;
