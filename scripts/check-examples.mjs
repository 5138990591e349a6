// Checks the examples of README.md and docs/guide against the types of the library, as an editor would check
// a copy. Left out: names and files from the surrounding text, and packages that are not installed.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { doors } from './lib/bundle.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Error codes: unknown name, unknown module, no value for `{ name }`, and members of values without a type.
 */
const ignoredCodes = new Set([2304, 2307, 2552, 18004, 18046]);

const options = {
  allowJs: true,
  checkJs: true,
  noEmit: true,
  strict: true,
  noImplicitAny: false,
  strictFunctionTypes: false,
  skipLibCheck: true,
  target: ts.ScriptTarget.ES2023,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  moduleDetection: ts.ModuleDetectionKind.Force,
  types: ['node'],
  paths: pathsOf(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))),
};

/** Returns the source of each entry point. */
function pathsOf({ exports }) {
  const entries = Object.entries(exports).filter(([name]) => !name.endsWith('.json'));
  const sourceOf = ({ default: file }) => doors[basename(file, '.js')];
  return Object.fromEntries(
    entries.map(([name, entry]) => [join('manycore', name), [join(root, sourceOf(entry))]]),
  );
}

/** Returns the code blocks of a page by the names that they have here. Line numbers are those of the page. */
function examplesOf(page) {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(/^```(js|mjs|ts)\n(.*?)^```$/gms)].map(([, kind, code], at, all) => {
    const linesAbove = text.slice(0, all[at]?.index).split('\n').length;
    const extension = kind === 'ts' ? 'mts' : 'mjs';
    return [`${page}.${at + 1}.${extension}`, '\n'.repeat(linesAbove) + code];
  });
}

function check() {
  const guides = readdirSync(join(root, 'docs/guide')).filter((name) => name.endsWith('.md'));
  const pages = ['README.md', ...guides.map((name) => `docs/guide/${name}`)];
  const examples = new Map(
    pages.flatMap(examplesOf).map(([name, code]) => [join(root, name), code]),
  );
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile } = host;
  host.fileExists = (name) => examples.has(name) || fileExists.call(host, name);
  host.readFile = (name) => examples.get(name) ?? readFile.call(host, name);
  const program = ts.createProgram([...examples.keys()], options, host);
  const problems = [];
  for (const name of examples.keys()) {
    const file = program.getSourceFile(name);
    if (file === undefined) throw new Error(`no example ${name}`);
    const found = [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ];
    for (const { code, start, messageText } of found) {
      if (ignoredCodes.has(code)) continue;
      const { line } = file.getLineAndCharacterOfPosition(start ?? 0);
      const page = name.slice(root.length).replace(/\.\d+\.m[jt]s$/, '');
      problems.push(
        `${page}:${line + 1}: TS${code}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`,
      );
    }
  }
  return { count: examples.size, problems };
}

const { count, problems } = check();
console.log([...problems, `${count} examples, ${problems.length} problems`].join('\n'));
if (problems.length > 0 || count === 0) process.exitCode = 1;
