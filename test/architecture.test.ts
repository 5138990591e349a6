// Holds ARCHITECTURE.md against the code: layers and who may import whom, who may print, how long a
// file may be, that the map names every folder. The table below is the one in ARCHITECTURE.md; change
// both in the commit that moves a boundary.

import assert from 'node:assert/strict';
import { posix } from 'node:path';
import { test } from 'node:test';
import ts from 'typescript';
import {
  filesBelow,
  readRepositoryFile,
  sourceFiles,
  sourceFilesOf,
} from './support/repository.js';

/** Imports go down only, from a larger number to a smaller one; within one number not at all. */
const layers: Readonly<Record<string, number>> = {
  errors: 0,
  lib: 0,
  native: 1,
  proc: 1,
  'blocking-pool': 2,
  channels: 2,
  context: 2,
  heap: 2,
  syscalls: 2,
  agent: 3,
  worker: 3,
  bus: 4,
  pool: 4,
  stm: 4,
  pmap: 5,
  'shared-data': 5,
  cluster: 6,
  'http-apps': 2,
  serve: 7,
  units: 8,
  observe: 9,
  tune: 10,
  cli: 11,
};

const longestFileLines = 400;

/** Where unknown values get their types: parsers of messages, and the loader of the binary. */
const assertingFiles = /\/protocol\.ts$|^src\/native\.ts$/;

interface Import {
  readonly from: string;
  /** A file of ours, from the root, or a package's name. */
  readonly to: string;
}

/** `src/pool/queue.ts` → `pool`, `src/errors.ts` → `errors`, the front door `src/public.ts` → `''`. */
function partOf(file: string): string {
  const [, first = '', second] = file.split('/');
  if (second !== undefined) return first;
  return first === 'public.ts' ? '' : first.replace(/\.ts$/, '');
}

function importsOf(file: string): Import[] {
  const { importedFiles } = ts.preProcessFile(readRepositoryFile(file), true, true);
  return importedFiles.map(({ fileName }) => ({
    from: file,
    to: fileName.startsWith('.')
      ? posix.join(posix.dirname(file), fileName).replace(/\.js$/, '.ts')
      : fileName,
  }));
}

/** Our files that loading `file` loads. */
function valueImportsOf(file: string): string[] {
  const statements = readRepositoryFile(file).matchAll(
    /^(?:import|export) (?!type\b)([^;'"]*?) ?from '(\.[^']+)\.js';/gm,
  );
  return [...statements]
    .filter(([, names = '']) => !/^\{(\s*type \w+,?)*\s*\}$/.test(names))
    .map(([, , path]) => `${posix.join(posix.dirname(file), path ?? '')}.ts`);
}

const imports = sourceFiles().flatMap(importsOf);
const crossings = imports.filter(
  ({ from, to }) => to.startsWith('src/') && partOf(from) !== partOf(to) && partOf(from) !== '',
);

function describeImports(wrong: readonly Import[]): string[] {
  return wrong.map(({ from, to }) => `${from} imports ${to}`);
}

/** Visits every node of a source file. */
function walk(file: string, visit: (node: ts.Node, source: ts.SourceFile) => void): void {
  const source = ts.createSourceFile(file, readRepositoryFile(file), ts.ScriptTarget.ES2023, true);
  const step = (node: ts.Node) => {
    visit(node, source);
    ts.forEachChild(node, step);
  };
  step(source);
}

function place(node: ts.Node, source: ts.SourceFile): string {
  const { line } = source.getLineAndCharacterOfPosition(node.getStart());
  return `${source.fileName}:${line + 1} ${node.getText().split('\n', 1)[0]}`;
}

test('every part has a layer, and every layer of the table has its part', () => {
  const parts = new Set(sourceFiles().map(partOf).filter(Boolean));
  assert.deepEqual([...parts].sort(), Object.keys(layers).sort());
});

test('parts import parts of lower layers only', () => {
  const wrong = crossings.filter(({ from, to }) => {
    const [source, target] = [layers[partOf(from)] ?? -1, layers[partOf(to)] ?? 99];
    return partOf(to) !== 'errors' && source <= target;
  });
  assert.deepEqual(describeImports(wrong), []);
});

test('parts import only the index of another part', () => {
  const index = /^src\/([^/]+\/index|[^/]+)\.ts$/;
  const wrong = crossings.filter(
    ({ from, to }) => !index.test(to) && !(partOf(from) === 'worker' && to === receivingHalf),
  );
  assert.deepEqual(describeImports(wrong), []);
});

/** The context part without its sending half, which a worker loads late. */
const receivingHalf = 'src/context/receiving.ts';

test('a worker starts without the sending half of the context', () => {
  const entry = 'src/worker/inside/entry.ts';
  const reached = new Map([[entry, '']]);
  for (const file of reached.keys()) {
    for (const to of valueImportsOf(file)) if (!reached.has(to)) reached.set(to, file);
  }
  assert.ok(reached.has(receivingHalf));
  const sending = ['sending.ts', 'encode/encode.ts', 'text/scope.ts', 'closures/inspector.ts'];
  for (const name of sending) assert.equal(reached.get(`src/context/${name}`), undefined, name);
});

test('nothing imports the public names', () => {
  assert.deepEqual(describeImports(imports.filter(({ to }) => /(?:^|\/)public\.ts$/.test(to))), []);
});

test('each export of the package is a public.ts, which only re-exports', () => {
  const { exports } = JSON.parse(readRepositoryFile('package.json'));
  const files = sourceFiles().filter((file) => file.endsWith('/public.ts'));
  assert.equal(
    files.length,
    Object.keys(exports).filter((name) => name !== './package.json').length,
  );
  for (const file of files) {
    walk(file, (node, source) => {
      if (node.parent !== source) return;
      const isReExport = ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined;
      assert.ok(isReExport || node.kind === ts.SyntaxKind.EndOfFileToken, place(node, source));
    });
  }
});

const mayPrint: ReadonlySet<string> = new Set([
  // A process passes on what its loops in threads print.
  'src/serve/process/mark-output.ts',
  // A worker waits for what its tasks have printed before it leaves; it prints nothing itself.
  'src/worker/inside/leave.ts',
  // What a fetch handler throws is answered with 500, and has to be seen somewhere.
  'src/serve/loop/fetch.ts',
  // The output of a sandbox comes to where a trusted worker writes by itself.
  'src/worker/partition/own-output.ts',
]);

test('only the command line prints', () => {
  const printing: string[] = [];
  const silent = sourceFiles().filter((name) => partOf(name) !== 'cli' && !mayPrint.has(name));
  for (const file of silent) {
    walk(file, (node, source) => {
      const isPrinting =
        ts.isPropertyAccessExpression(node) &&
        /^(globalThis\.)?(console\.\w+|process\.(stdout|stderr))$/.test(node.getText());
      if (isPrinting) printing.push(place(node, source));
    });
  }
  assert.deepEqual(printing, []);
});

test('types are asserted only where messages and bytes are parsed', () => {
  const asserted: string[] = [];
  for (const file of sourceFiles().filter((name) => !assertingFiles.test(name))) {
    walk(file, (node, source) => {
      const isAssertion = ts.isAsExpression(node) && node.type.getText() !== 'const';
      if (isAssertion) asserted.push(place(node, source));
    });
  }
  assert.deepEqual(asserted, []);
});

const partsOfCall = ['channels', 'context', 'worker', 'lib', 'pmap', 'pool'];
/** What programs replace, or spoil by what they add to `Object.prototype`, and where ours of it is. */
const replaceable: readonly (readonly [pattern: RegExp, ours: string])[] = [
  [/^(Object|Reflect)\.(definePropert|getOwnPropertyDescriptor)/, 'lib/node/descriptors.ts'],
  [/^JSON\.stringify$/, 'lib/node/json.ts'],
  [/^(performance|Date)\.now$/, 'lib/node/timers.ts'],
  [/^process\.hrtime/, 'lib/node/timers.ts'],
  [/^Function\.prototype\.toString/, 'lib/node/source-text.ts'],
];

test('the parts of a call take nothing that programs replace, but by src/lib', () => {
  const found: string[] = [];
  for (const file of sourceFilesOf(partsOfCall)) {
    walk(file, (node, source) => {
      if (!ts.isPropertyAccessExpression(node)) return;
      for (const [pattern, ours] of replaceable) {
        const isOurs = file === `src/${ours}`;
        if (!isOurs && pattern.test(node.getText())) found.push(`${place(node, source)}: ${ours}`);
      }
    });
  }
  assert.deepEqual(found, []);
});

/**
 * Where modules are loaded after their importer. In Jest that prints an error once the test file is over, and Jest
 * exits with 1: so not from a timer or an event, but within a call, or where no test runner has its loader.
 */
const loadsLate: Readonly<Record<string, string>> = {
  'src/lib/node/cpu-profile.ts': 'the inspector, for a profile only',
  'src/agent/sources.ts': 'no agent starts in a context; figures are asked for by a call',
  'src/cli/commands/init/pm2-file.ts': 'the command',
  'src/cli/commands/run/run.ts': 'the command, of the program that it ran',
  'src/cli/main.ts': 'the command',
  'src/cluster/data/kv.ts': 'a call',
  'src/cluster/tasks/jetstream.ts': 'a call',
  'src/cluster/nats/nats.ts': 'a call',
  'src/context/closures/inspector.ts': 'the first snapshot: a call',
  'src/context/values/intrinsics.ts': 'Node before 20.16 alone',
  'src/context/decode/modules.ts': 'what a result needs',
  'src/context/late.ts': 'in workers: programs load it at once',
  'src/context/text/parser.ts': 'the first snapshot: a call',
  'src/context/decode/recreate.ts': 'what a result needs',
  'src/context/modules/references.ts': 'a snapshot: a call',
  'src/lib/node/timers.ts': 'when the library is loaded',
  'src/lib/version.ts': 'the command, and a call',
  'src/lib/node/worker-data.ts': 'in threads of ours',
  'src/native.ts': 'the first pool: a call',
  'src/observe/metrics/endpoint.ts': 'a call',
  'src/observe/opentelemetry/api.ts': 'a call',
  'src/serve/loop/app.ts': 'in processes of servers',
  'src/serve/loop/main-module.ts': 'in processes of servers',
  'src/serve/schedule.ts': 'for an option: in programs that serve',
  'src/syscalls/count-requests.cts': 'in commands that are traced',
  'src/tune/load/tune-entry.ts': 'in processes of tune',
  'src/units/unit/unit-module.ts': 'in loops',
};

test('modules are loaded late in known places only', () => {
  const found = new Set<string>();
  for (const file of sourceFiles()) {
    walk(file, (node) => {
      if (!ts.isCallExpression(node)) return;
      const { expression } = node;
      const isImport = expression.kind === ts.SyntaxKind.ImportKeyword;
      if (isImport || /^(?:require|createRequire\(.*\))$/s.test(expression.getText()))
        found.add(file);
    });
  }
  assert.deepEqual([...found].sort(), Object.keys(loadsLate).sort());
});

test('handlers are given to an object, never assigned to its fields', () => {
  const assigned: string[] = [];
  for (const file of sourceFiles()) {
    walk(file, (node, source) => {
      if (!ts.isBinaryExpression(node)) return;
      const { left, operatorToken } = node;
      const isAssignment = operatorToken.kind === ts.SyntaxKind.EqualsToken;
      if (!isAssignment || !ts.isPropertyAccessExpression(left)) return;
      const isOwn = left.expression.kind === ts.SyntaxKind.ThisKeyword;
      if (/^on[A-Z]/.test(left.name.text) && !isOwn) assigned.push(place(node, source));
    });
  }
  assert.deepEqual(assigned, []);
});

test('a file of more than 400 lines says in its opening comment why', () => {
  const files = [
    ...sourceFiles(),
    ...filesBelow('test', '.ts'),
    ...filesBelow('scripts', '.mjs'),
    ...filesBelow('crates', '.rs'),
  ];
  const wrong = files.filter((file) => {
    const lines = readRepositoryFile(file).split('\n');
    if (lines.length <= longestFileLines) return false;
    const end = lines.findIndex((line) => !line.startsWith('//'));
    return !/\bLong \(over 400 lines\)/.test(lines.slice(0, end).join('\n'));
  });
  assert.deepEqual(wrong, []);
});

test('the map in ARCHITECTURE.md names every folder of src/, and no path that is not there', () => {
  const page = readRepositoryFile('ARCHITECTURE.md');
  const folders = new Set(sourceFiles().map((file) => `${posix.dirname(file)}/`));
  folders.delete('src/');
  assert.deepEqual(
    [...folders].filter((folder) => !page.includes(`\`${folder}\``)),
    [],
  );
  const known = new Set([...sourceFiles(), ...folders, 'src/']);
  const named = [...page.matchAll(/`(src\/[^`*]*)`/g)].map(([, path]) => path ?? '');
  assert.deepEqual(
    named.filter((path) => !known.has(path)),
    [],
  );
});

test('each arrow between parts in ARCHITECTURE.md is an import', () => {
  const [, diagram = ''] = readRepositoryFile('ARCHITECTURE.md').split('flowchart TD');
  const arrows = [...(diagram.split('```')[0] ?? '').matchAll(/^ *(\w+)(?:\[.*?\])? --> (.*)$/gm)];
  assert.ok(arrows.length > 8);
  const imported = new Set(crossings.map(({ from, to }) => `${partOf(from)} --> ${partOf(to)}`));
  const wrong = arrows
    .flatMap(([, from, to = '']) => to.split(' & ').map((each) => [from, /\w+/.exec(each)?.[0]]))
    .map((parts) => parts.join(' --> '))
    .filter((arrow) => !imported.has(arrow));
  assert.deepEqual(wrong, []);
});

test('the layer table in ARCHITECTURE.md is the one held here', () => {
  const rows = readRepositoryFile('ARCHITECTURE.md').matchAll(/^\| (\d+) \| ([a-z, -]+) \|/gm);
  const table = [...rows].flatMap(([, layer, parts = '']) =>
    parts.split(', ').map((part) => [part, Number(layer)] as const),
  );
  assert.deepEqual(Object.fromEntries(table), layers);
});

test('every runtime dependency has its reason in ARCHITECTURE.md', () => {
  const page = readRepositoryFile('ARCHITECTURE.md');
  const manifest: unknown = JSON.parse(readRepositoryFile('package.json'));
  assert.ok(typeof manifest === 'object' && manifest !== null && 'dependencies' in manifest);
  const names = Object.keys(manifest.dependencies ?? {});
  assert.deepEqual(
    names.filter((name) => !page.includes(`- \`${name}\`: `)),
    [],
  );
});
