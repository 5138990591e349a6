// Behaviour of a function as text for comparison: its result and output, and the structure of both and of the
// function itself. The same code runs at home and in a worker; the text must be equal.
'use strict';

/** Calls `func` with `args` and resolves with the text; an error of `func` is part of it. */
exports.observe = async (func, args = []) => {
  const printed = [];
  const { log } = console;
  console.log = (...values) => printed.push(values.map((value) => describe(value)));
  const seen = { func: describe(func) };
  try {
    const returned = func(...args);
    seen.kind = returned instanceof Promise ? 'promise' : typeof returned;
    // Awaits only promises and iterators: the caller may change captured values right after this call.
    const isLater = returned instanceof Promise || typeof returned?.next === 'function';
    seen.value = describe(isLater ? await drained(await returned) : returned);
  } catch (error) {
    seen.error = describe(error);
  } finally {
    console.log = log;
  }
  return JSON.stringify({ ...seen, printed });
};

/** The items of an iterator that `func` has returned; any other value as it is. */
async function drained(value) {
  if (typeof value?.next !== 'function' || typeof value !== 'object') return value;
  const items = [];
  for await (const item of value) items.push(item);
  return { kind: value[Symbol.toStringTag], items };
}

const wellKnown = new Map();
for (const name of Object.getOwnPropertyNames(globalThis)) {
  const value = Object.getOwnPropertyDescriptor(globalThis, name).value;
  if (value === null || !['object', 'function'].includes(typeof value)) continue;
  wellKnown.set(value, `global ${name}`);
  if (value.prototype !== undefined) wellKnown.set(value.prototype, `global ${name}.prototype`);
}
wellKnown.set(globalThis, 'globalThis');
wellKnown.set(globalThis.crypto, 'global crypto');
for (const name of ['crypto', 'fs', 'fs/promises', 'os', 'path', 'util']) {
  wellKnown.set(require(`node:${name}`), `module ${name}`);
}

/** `value` as plain JSON: own properties with their flags, prototypes, sharing and cycles by number. */
const describe = (root) => {
  const known = new Map();
  return visit(root);

  function visit(value) {
    if (typeof value === 'symbol') return String(value);
    if (typeof value === 'bigint') return `${value}n`;
    if (value === null || !['object', 'function'].includes(typeof value)) {
      return Object.is(value, -0) ? '-0' : typeof value === 'string' ? `"${value}"` : String(value);
    }
    if (wellKnown.has(value)) return wellKnown.get(value);
    if (known.has(value)) return `#${known.get(value)}`;
    known.set(value, known.size);
    if (value instanceof RegExp) return `${value} at ${value.lastIndex}`;
    if (value instanceof Date) return value.toISOString();
    if (value instanceof Error) {
      return { error: `${value.name}: ${firstLine(value.message)}`, of: value.constructor.name };
    }
    if (value instanceof Map || value instanceof Set)
      return { items: [...value].map(visit), ...shape(value) };
    return typeof value === 'function'
      ? { ...functionShape(value), ...shape(value) }
      : shape(value);
  }

  function shape(value) {
    const own = {};
    for (const key of Reflect.ownKeys(value)) {
      if (
        typeof value === 'function' &&
        ['length', 'name', 'prototype', 'arguments', 'caller'].includes(key)
      )
        continue;
      own[String(key)] = property(Object.getOwnPropertyDescriptor(value, key));
    }
    const parent = Object.getPrototypeOf(value);
    return {
      own,
      ...(Array.isArray(value) && { length: value.length }),
      ...(!Object.isExtensible(value) && { extensible: false }),
      // A prototype of the language is named, one of the program is described.
      prototype: parent === null ? 'null' : visit(parent),
    };
  }

  function property({ get, set, value, writable, enumerable, configurable }) {
    const flags = `${writable ? 'w' : ''}${enumerable ? 'e' : ''}${configurable ? 'c' : ''}`;
    return get || set
      ? { flags, get: visit(get), set: visit(set) }
      : { flags, value: visit(value) };
  }

  function functionShape(value) {
    const isClass = /^class\b/.test(Function.prototype.toString.call(value));
    const members = value.prototype;
    return {
      function: value.name,
      length: value.length,
      kind: Object.prototype.toString.call(value),
      strict: !Object.hasOwn(value, 'caller'),
      ...(members && { members: visit(members) }),
      ...((isClass || (members && Reflect.ownKeys(members).length > 1)) && {
        works: exercise(value),
      }),
    };
  }
};

/** Returns the results of the methods and static methods of a class; each answer or error as one line. */
function exercise(Class) {
  const answers = {};
  const printed = [];
  const { log } = console;
  console.log = (...values) => printed.push(values.map(String));
  const ask = (name, question) => {
    try {
      answers[name] = brief(question());
    } catch (error) {
      answers[name] = `throws ${error.name}: ${firstLine(error.message)}`;
    }
  };
  let instance;
  ask('new', () => {
    instance = new Class(1);
    return instance;
  });
  for (
    let parent = Class;
    typeof parent === 'function' && parent.prototype;
    parent = Object.getPrototypeOf(parent)
  ) {
    if (wellKnown.has(parent)) break;
    askEach('static ', parent, Class);
    if (instance) askEach('', parent.prototype, instance);
  }
  console.log = log;
  return { answers, printed };

  function askEach(prefix, members, receiver) {
    for (const key of Reflect.ownKeys(members)) {
      if (['constructor', 'prototype', 'length', 'name', 'caller', 'arguments'].includes(key))
        continue;
      const { value, get } = Object.getOwnPropertyDescriptor(members, key);
      const name = `${prefix}${members.constructor?.name ?? ''} ${String(key)}`;
      if (get) ask(name, () => get.call(receiver));
      else if (typeof value === 'function') ask(name, () => value.call(receiver, 3));
    }
  }
}

function brief(value) {
  if (typeof value === 'function') return `function ${value.name}`;
  if (typeof value !== 'object' || value === null) return String(value);
  const own = Object.entries(value).map(
    ([key, item]) => `${key}: ${typeof item === 'object' ? '…' : item}`,
  );
  return `${value.constructor?.name} { ${own.join(', ')} }`;
}

const firstLine = (text) => String(text).split('\n')[0];
