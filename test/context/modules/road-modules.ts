// Random modules that import each other, with state of every kind. Jobs in them reach the state directly, by
// private functions, by exports, and by exports of other modules.
// Not here: running them (roads.test.ts).

import type { Random } from '../../support/index.js';

/** Text by file name; `user.mjs` exports `call()`, which returns a function and its arguments. */
export type RoadFiles = Readonly<Record<string, string>>;

type Format = 'esm' | 'exports' | 'object' | 'compiled';

interface Kind {
  /** The statement for the variable `v`. */
  readonly declare: (v: string) => string;
  readonly change: (v: string) => string;
  readonly read: (v: string) => string;
  /** True: it may be exported itself. */
  readonly isObject: boolean;
}

const kinds: Readonly<Record<string, Kind>> = {
  counter: {
    declare: (v) => `let ${v} = 0;`,
    change: (v) => `(${v} += 2)`,
    read: (v) => v,
    isObject: false,
  },
  map: {
    declare: (v) => `const ${v} = new Map();`,
    change: (v) => `${v}.set(${v}.size, 1).size`,
    read: (v) => `${v}.size`,
    isObject: true,
  },
  object: {
    declare: (v) => `const ${v} = { n: 0, inner: { list: [] } };`,
    change: (v) => `${v}.inner.list.push(${v}.n++)`,
    read: (v) => `${v}.inner.list.length + ${v}.n`,
    isObject: true,
  },
  class: {
    declare: (v) =>
      `class ${v} { static n = 0; static up() { return ++${v}.n } is() { return 1 } }`,
    change: (v) => `${v}.up()`,
    read: (v) => `[${v}.n, new ${v}().is()]`,
    isObject: true,
  },
  private: {
    declare: (v) =>
      `class ${v} { static #n = 0; static up() { return ++${v}.#n } static get n() { return ${v}.#n } }`,
    change: (v) => `${v}.up()`,
    read: (v) => `${v}.n`,
    isObject: true,
  },
  store: {
    declare: (v) =>
      `function make_${v}() { const held = []; let n = 0; return { put: () => { n++; held.push(n); return n }, size: () => [held.length, n] } }\nconst ${v} = make_${v}();`,
    change: (v) => `${v}.put()`,
    read: (v) => `${v}.size()`,
    isObject: true,
  },
  once: {
    declare: (v) => `const ${v} = (() => { let n = 0; return { up: () => ++n, get: () => n } })();`,
    change: (v) => `${v}.up()`,
    read: (v) => `${v}.get()`,
    isObject: true,
  },
  memo: {
    declare: (v) => `function ${v}() { return ${v}.n = (${v}.n ?? 0) + 1 }`,
    change: (v) => `${v}()`,
    read: (v) => `${v}.n`,
    isObject: true,
  },
  instance: {
    declare: (v) =>
      `class Of_${v} { n = 0; up() { this.n++; return this } }\nconst ${v} = new Of_${v}();`,
    change: (v) => `${v}.up().n`,
    read: (v) => `[${v}.n, ${v} instanceof Of_${v}]`,
    isObject: false,
  },
  handlers: {
    declare: (v) => `let n_${v} = 0;\nconst ${v} = [];\n${v}.push(() => ++n_${v});`,
    change: (v) => `${v}[0]()`,
    read: (v) => `n_${v}`,
    isObject: false,
  },
};
const kindNames = Object.keys(kinds);

/** Values that are only compared, or never change. */
const marks: readonly string[] = [
  `Symbol('mark')`,
  'Object.freeze({ is: 1 })',
  '{ is: 2 }',
  'class {}',
  '7',
];

interface Module {
  readonly name: string;
  readonly format: Format;
  readonly file: string;
  /** Actions of other modules by its exports. */
  readonly shown: readonly Action[];
  readonly text: string;
}

/** An expression, with `$` before each export of the module. */
interface Action {
  readonly text: string;
  readonly names: readonly string[];
}

function moduleOf(dice: Random, name: string, format: Format, earlier: readonly Module[]): Module {
  const lines: string[] = [];
  const exported: string[] = [];
  const inside: string[] = [];
  const shown: Action[] = [];
  const used: string[] = [];
  for (const module of earlier) {
    if (format === 'esm' && module.format === 'esm' && dice.next() < 0.2) {
      lines.push(
        dice.pick([
          `export * from './${module.file}';`,
          `export { ${namesOf(module).join(', ')} } from './${module.file}';`,
        ]),
      );
      shown.push(...module.shown);
    }
    if (dice.next() > 0.7) continue;
    const { statement, actions } = importOf(dice, module, format);
    lines.push(statement);
    used.push(...actions);
  }
  for (let at = 0; at < dice.integer(1, 4); at += 1) {
    const kind = kinds[dice.pick(kindNames)];
    if (kind === undefined) continue;
    const v = `v${at}_${name}`;
    const further = used.length > 0 && dice.next() < 0.3 ? `, ${dice.pick(used)}` : '';
    lines.push(
      kind.declare(v),
      `function change_${v}() { return [${kind.change(v)}${further}] }`,
      `const read_${v} = () => ${kind.read(v)};`,
      dice.pick([
        `const put_${v} = () => change_${v}();`,
        `function put_${v}() { return ${kind.change(v)} }`,
        `const put_${v} = change_${v};`,
        `const put_${v} = { bump() { return ${kind.change(v)} } }.bump;`,
      ]),
    );
    inside.push(kind.change(v), kind.read(v), `change_${v}()`, `read_${v}()`, `put_${v}()`);
    if (kind.isObject && dice.next() < 0.4) {
      const held = `held_${v}`;
      const [literal, path] = dice.pick<readonly [string, string]>([
        [`{ ${v} }`, `${held}.${v}`],
        [`[{ at: ${v} }]`, `${held}[0].at`],
        [v, held],
      ]);
      lines.push(`const ${held} = ${literal};`);
      inside.push(kind.change(path), kind.read(path));
    }
    const names = [`put_${v}`];
    shown.push({ text: `$put_${v}()`, names: [`put_${v}`] });
    if (dice.next() < 0.6) {
      names.push(`read_${v}`);
      shown.push({ text: `$read_${v}()`, names: [`read_${v}`] });
    }
    if (kind.isObject && dice.next() < 0.3) {
      names.push(v);
      shown.push({ text: kind.change(`$${v}`), names: [v] });
      shown.push({ text: kind.read(`$${v}`), names: [v] });
    }
    if (kind === kinds['counter'] && dice.next() < 0.4) {
      names.push(v);
      shown.push({ text: `$${v}`, names: [v] });
    }
    exported.push(...names);
    // The form that compilers write.
    if (format === 'compiled') inside.push(`(0, exports.put_${v})()`);
    if (format === 'exports') inside.push(`exports.put_${v}()`);
  }
  if (dice.next() < 0.5) {
    const mark = `mark_${name}`;
    lines.push(`const ${mark} = ${dice.pick(marks)};`, `const is_${mark} = (x) => x === ${mark};`);
    lines.push(`const give_${mark} = () => ${mark};`);
    inside.push(`is_${mark}(${mark})`, `give_${mark}() === ${mark}`);
    exported.push(`is_${mark}`, `give_${mark}`);
    shown.push({ text: `$is_${mark}($give_${mark}())`, names: [`is_${mark}`, `give_${mark}`] });
  }
  inside.push(...used);
  const job = (): string =>
    `{ const out = []; ${Array.from({ length: dice.integer(2, 6) }, () => `out.push(${dice.pick(inside)});`).join(' ')} return out }`;
  lines.push(
    `const job_${name} = () => ${job()};`,
    `function make_${name}() { return () => ${job()} }`,
    `const box_${name} = { run() ${job()}, list: [() => ${job()}] };`,
    `class Job_${name} { run() ${job()} }`,
    `const give_${name} = () => [box_${name}, () => new Job_${name}()];`,
  );
  exported.push(`job_${name}`, `make_${name}`, `give_${name}`, `Job_${name}`);
  lines.push(exportsOf(dice, format, exported));
  const file = `${name}.${format === 'esm' ? 'mjs' : 'cjs'}`;
  return { name, format, file, shown, text: `${lines.join('\n')}\n` };
}

function exportsOf(dice: Random, format: Format, names: readonly string[]): string {
  if (format === 'esm') return `export { ${names.join(', ')} };`;
  if (format === 'object') return `module.exports = { ${names.join(', ')} };`;
  if (format === 'exports') return names.map((each) => `exports.${each} = ${each};`).join('\n');
  const head = `Object.defineProperty(exports, '__esModule', { value: true });`;
  const getter = dice.next() < 0.3;
  const each = (name: string): string =>
    getter
      ? `Object.defineProperty(exports, '${name}', { enumerable: true, get: function () { return ${name}; } });`
      : `exports.${name} = ${name};`;
  return [head, ...names.map(each)].join('\n');
}

/** The exports that `module` shows to others. */
function namesOf({ shown }: Pick<Module, 'shown'>): string[] {
  return [...new Set(shown.flatMap((each) => each.names))];
}

/** Text by which a module of `format` has another one, and may hold its exports. */
function importOf(
  dice: Random,
  module: Module,
  format: Format,
): { readonly statement: string; readonly actions: readonly string[] } {
  const { name, shown } = module;
  const names = namesOf({ shown });
  const { statement, prefix } = statementOf(dice, module, names, format);
  const by = (start: string) => shown.map(({ text }) => text.replaceAll('$', start));
  if (names.length === 0 || dice.next() < 0.6) return { statement, actions: by(prefix) };
  const held = `kept_${name}`;
  const members = names.map((each) => `${each}: ${prefix}${each}`).join(', ');
  const holder = `const ${held} = { ${members} };`;
  return { statement: `${statement}\n${holder}`, actions: [...by(prefix), ...by(`${held}.`)] };
}

/** `prefix`: the expression before an export. */
function statementOf(
  dice: Random,
  { name, file, format: own }: Module,
  names: readonly string[],
  format: Format,
): { readonly statement: string; readonly prefix: string } {
  if (format === 'compiled') {
    return { statement: `const ${name}_1 = require('./${file}');`, prefix: `${name}_1.` };
  }
  const isNamed = dice.next() < 0.5 && names.length > 0;
  if (format !== 'esm') {
    const pattern = names.map((each) => `${each}: ${name}_${each}`).join(', ');
    return isNamed
      ? { statement: `const { ${pattern} } = require('./${file}');`, prefix: `${name}_` }
      : { statement: `const ${name} = require('./${file}');`, prefix: `${name}.` };
  }
  // Node finds names of these two in CommonJS.
  if (isNamed && (own === 'esm' || own === 'exports')) {
    const list = names.map((each) => `${each} as ${name}_${each}`).join(', ');
    return { statement: `import { ${list} } from './${file}';`, prefix: `${name}_` };
  }
  const clause = own === 'esm' ? `* as ${name}` : name;
  return { statement: `import ${clause} from './${file}';`, prefix: `${name}.` };
}

/** A call with jobs of `modules`, and its own uses of their exports. */
function userText(dice: Random, modules: readonly Module[]): string {
  const statements: string[] = [];
  const own: string[] = [];
  for (const module of modules) {
    const { statement, actions } = importOf(dice, module, 'esm');
    statements.push(statement);
    const clause = module.format === 'esm' ? `* as all_${module.name}` : `all_${module.name}`;
    statements.push(`import ${clause} from './${module.file}';`);
    own.push(...actions);
  }
  const { name, shown } = dice.pick(modules);
  const ofGiven = shown.map(({ text }) => text.replaceAll('$', 'given.'));
  const of = `all_${name}`;
  const jobs = [
    `${of}.job_${name}`,
    `${of}.make_${name}()`,
    `${of}.give_${name}()[0].run`,
    `${of}.give_${name}()[0].list[0]`,
    `((job) => () => job.run())(${of}.give_${name}()[1]())`,
    `((job) => () => job.run())(new ${of}.Job_${name}())`,
  ];
  const actions = Array.from({ length: dice.integer(1, 3) }, () => dice.pick(own)).join(', ');
  const calls = [
    '[job, []]',
    `[() => [${actions}, job()], []]`,
    `[(f) => [${actions}, f()], [job]]`,
    `[(f) => [f(), ${actions}], [job]]`,
    `[(it) => [it.f(), ${actions}, it.again()], [{ f: job, again: second }]]`,
    `[() => [job(), second(), ${actions}], []]`,
    `[(it) => [job(), it.run()], [new ${of}.Job_${name}()]]`,
    `[(given) => [${dice.pick(ofGiven)}, job(), ${dice.pick(ofGiven)}], [${of}]]`,
    `[({ given }) => [${dice.pick(ofGiven)}, job(), ${dice.pick(ofGiven)}], [{ given: ${of} }]]`,
  ];
  return `${statements.join('\n')}
export function call() {
  const job = ${dice.pick(jobs)};
  const second = ${dice.pick(jobs)};
  return ${dice.pick(calls)};
}
`;
}

/** Files of up to three modules, and of their user. */
export function roadFiles(dice: Random): RoadFiles {
  const modules: Module[] = [];
  for (let at = 0; at < dice.integer(1, 4); at += 1) {
    const format = dice.pick<Format>(['esm', 'esm', 'exports', 'object', 'compiled']);
    // CommonJS requires no ES modules everywhere.
    const known = modules.filter((each) => format === 'esm' || each.format !== 'esm');
    modules.push(moduleOf(dice, `m${at}`, format, known));
  }
  const files = Object.fromEntries(modules.map(({ file, text }) => [file, text]));
  return { ...files, 'user.mjs': userText(dice, modules) };
}
