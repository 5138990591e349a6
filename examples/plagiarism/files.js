// Reads the Java files below a folder. A fault of one file does not end the run: the result records it, and
// the others go on. Links are followed. Each folder and file is read once, under whatever number of names, so
// that circular links end and no file is a copy of itself.
import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { decode } from './encoding.js';

// Limit of one file: no one writes more by hand, and generated files would take most of the time.
const largestBytes = 1024 * 1024;

/**
 * Reads every `.java` file below `folder`, in ascending order of paths. Each is `{ path, text }`, with a
 * `note` when the text was not UTF-8, or `{ path, problem: { kind, reason } }`. Unreadable folders are in the
 * list too. Rejects when `folder` itself cannot be read.
 */
export async function readJavaFiles(folder) {
  const walk = { root: folder, seen: new Set(), files: [] };
  await readdir(folder);
  await walkFolder(walk, folder);
  return walk.files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function walkFolder(walk, folder) {
  if (!(await isNew(walk, folder))) return;
  for (const name of (await readdir(folder)).sort()) {
    const at = join(folder, name);
    try {
      await visit(walk, at);
    } catch (error) {
      note(walk, at, problem('unreadable', `cannot be read (${error.code ?? error.message})`));
    }
  }
}

async function visit(walk, at) {
  const isJava = at.endsWith('.java');
  const info = await stat(at).catch((error) => {
    if (isJava) throw error;
  });
  if (info?.isDirectory()) return walkFolder(walk, at);
  if (!isJava) return;
  if (!info.isFile()) return note(walk, at, problem('unreadable', 'is not a file'));
  if (info.size > largestBytes) {
    const mebibytes = (info.size / 2 ** 20).toFixed(1);
    return note(walk, at, problem('too-large', `is too large (${mebibytes} MiB)`));
  }
  if (!(await isNew(walk, at))) {
    return note(walk, at, problem('link', 'is another name of a file that is compared'));
  }
  note(walk, at, decode(await readFile(at)));
}

async function isNew({ seen }, at) {
  const real = await realpath(at);
  if (seen.has(real)) return false;
  seen.add(real);
  return true;
}

function note({ root, files }, at, what) {
  files.push({ path: relative(root, at).split(sep).join('/'), ...what });
}

function problem(kind, reason) {
  return { problem: { kind, reason } };
}
