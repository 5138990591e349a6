// Joins the modules of dist/src, which tests import, into few files, dist/src/joined/: opening 200 small modules is
// half of the start of a worker, and tests start thousands. Each module keeps its file, which re-exports from the
// joined one: a test and its workers import any module by its path, and have one copy of it. Not by esbuild as
// the bundle: with each module an entry point, it makes a file of each.
import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { posix, relative, resolve } from 'node:path';
import { programs } from './bundled-urls.mjs';
import { compiledName, typeScriptFiles, urlFrom, withUrls } from './sources.mjs';

const outdir = 'dist/src';
const joinedFolder = 'joined';
/** Marks the time of the last join by its modification time. */
const joinedMark = `${outdir}/${joinedFolder}/.joined`;

/** Modules that programs and tests load first. Modules with the same set of roots share a file. */
const roots = [
  ...Object.values(programs),
  'src/public.ts',
  'src/serve/public.ts',
  // Loaded late, by import().
  'src/agent/sampler.ts',
  'src/agent/socket.ts',
  'src/observe/metrics/prometheus.ts',
  'src/cli/commands/top/top.ts',
  'src/cli/commands/dashboard/dashboard.ts',
];

/** Prefix of a path that becomes a URL when its file is known. */
const urlMark = 'compiled:';

/**
 * Replaces the JavaScript that the compiler wrote to dist/src. Does nothing when it wrote none since, or
 * without the development packages.
 */
export async function joinModules() {
  if (isJoined() || !existsSync('node_modules/rollup') || !existsSync('node_modules/esbuild'))
    return;
  const [{ rollup }, { transform }] = await Promise.all([import('rollup'), import('esbuild')]);
  const files = typeScriptFiles().filter((name) => /^src\b.*\.ts$/.test(name));
  const graph = await rollup({
    input: Object.fromEntries(files.map((file) => [nameOf(file), file])),
    plugins: [typeScript(transform)],
    treeshake: false,
    external: (id) => !/^[./]/.test(id),
    onwarn(warning) {
      throw new Error(warning.message);
    },
  });
  rmSync(`${outdir}/${joinedFolder}`, { recursive: true, force: true });
  await graph.write({
    dir: outdir,
    format: 'es',
    sourcemap: true,
    minifyInternalExports: false,
    hoistTransitiveImports: false,
    chunkFileNames: `${joinedFolder}/[name].js`,
    manualChunks: fileByUsers(),
  });
  await graph.close();
  writeFileSync(joinedMark, '');
}

/** True: `name`, below dist/, is a file of several modules. */
export function isJoinedFile(name) {
  return posix.dirname(name) === posix.join(posix.basename(outdir), joinedFolder);
}

/** True: the compiler has written no module since the last time. */
function isJoined() {
  const joinedMs = mtimeMs(joinedMark);
  return typeScriptFiles()
    .filter((name) => /^src\b.*\.ts$/.test(name))
    .every((name) => mtimeMs(compiledName(name)) <= joinedMs);
}

function mtimeMs(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** The name of the compiled module below dist/src, without its ending. */
function nameOf(file) {
  return posix.relative(outdir, compiledName(file)).replace(/\.js$/, '');
}

/** For Rollup: modules in TypeScript, whose URLs lead from the joined files to where they led. */
function typeScript(transform) {
  return {
    name: 'TypeScript',
    resolveId(specifier, importer) {
      if (importer === undefined || !specifier.startsWith('.')) return null;
      return resolve(importer, '..', specifier.replace(/js$/, 'ts'));
    },
    async transform(text, path) {
      const source = withUrls(path, text, (url) => `${urlMark}${url}`);
      const options = { loader: 'ts', target: 'node20.19', sourcemap: true, sourcefile: path };
      const { code, map } = await transform(source, options);
      return { code, map };
    },
    renderChunk(text, { fileName }) {
      const folder = posix.dirname(posix.join(outdir, fileName));
      const urls = new RegExp(`(?<=")${urlMark}([^"]+)(?=")`, 'g');
      return { code: text.replace(urls, (_, path) => urlFrom(folder, path)), map: null };
    },
  };
}

/** For Rollup: the name of the file of a module. A program stays alone: loading it starts it. */
function fileByUsers() {
  let reaches;
  const names = new Map();
  return (id, { getModuleInfo }) => {
    reaches ??= roots.map((root) => reach(resolve(root), getModuleInfo));
    const file = relative('.', id).replaceAll('\\', '/');
    if (Object.values(programs).includes(file)) return undefined;
    const users = reaches.map((each) => (each.has(id) ? '1' : '0')).join('');
    if (!users.includes('1')) return undefined;
    if (!names.has(users)) names.set(users, nameOf(file).replaceAll('/', '-'));
    return names.get(users);
  };
}

/** Returns a module and all that it imports, directly or not. */
function reach(root, getModuleInfo) {
  const found = new Set([root]);
  for (const id of found) {
    for (const each of getModuleInfo(id)?.importedIds ?? []) {
      if (getModuleInfo(each)?.isExternal === false) found.add(each);
    }
  }
  return found;
}
