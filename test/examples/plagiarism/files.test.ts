// Reading a folder of sources: a problem is reported with its file, the other files are read.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readJavaFiles, type SourceFile } from './modules.js';

const text = 'class Ärger { String s = "größer"; }\n';

/** A folder with these files; a string is written as UTF-8. */
function makeFolder(t: TestContext, files: Readonly<Record<string, string | Buffer>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'manycore-plagiarism-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
}

async function readOne(t: TestContext, content: string | Buffer): Promise<SourceFile> {
  const [file] = await readJavaFiles(makeFolder(t, { 'A.java': content }));
  assert.ok(file !== undefined);
  return file;
}

const utf16 = Buffer.from(`\u{feff}${text}`, 'utf16le');

const encodings: readonly (readonly [name: string, bytes: Buffer, note: RegExp | undefined])[] = [
  ['UTF-8', Buffer.from(text), undefined],
  ['UTF-8 with a byte order mark', Buffer.from(`\u{feff}${text}`), undefined],
  ['UTF-16 LE', utf16, /UTF-16 LE/],
  ['UTF-16 BE', Buffer.from(utf16).swap16(), /UTF-16 BE/],
  ['Latin-1', Buffer.from(text, 'latin1'), /Latin-1/],
];

for (const [name, bytes, note] of encodings) {
  test(`a file in ${name} is read, and it is noted when it was not UTF-8`, async (t) => {
    const file = await readOne(t, bytes);
    assert.equal(file.text, text);
    if (note === undefined) assert.equal(file.note, undefined);
    else assert.match(file.note ?? '', note);
  });
}

const broken: readonly (readonly [what: string, content: string | Buffer, kind: string])[] = [
  ['an empty file', '', 'empty'],
  ['a file of blanks', ' \n\t\r\n', 'empty'],
  ['a file with nothing but a byte order mark', Buffer.from([0xff, 0xfe]), 'empty'],
  ['a class file', Buffer.from([0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61]), 'binary'],
  ['UTF-16 without a byte order mark', Buffer.from(text, 'utf16le'), 'binary'],
  ['UTF-16 with zero characters', Buffer.from('\u{feff}class A\0', 'utf16le'), 'binary'],
  ['a file of more than a mebibyte', Buffer.alloc(2 ** 20 + 1, 'a'), 'too-large'],
];

for (const [what, content, kind] of broken) {
  test(`${what} is a problem of the kind ${kind}`, async (t) => {
    const { text: read, problem } = await readOne(t, content);
    assert.deepEqual([read, problem?.kind], [undefined, kind]);
  });
}

test('files are found at any depth, in the order of their paths, and others are left alone', async (t) => {
  const folder = makeFolder(t, {
    'b/c/D.java': text,
    'a.java': text,
    'b/C.java': text,
    'b/E.txt': 'e',
  });
  mkdirSync(join(folder, 'named.java'));
  const files = await readJavaFiles(folder);
  assert.deepEqual(
    files.map(({ path }) => path),
    ['a.java', 'b/C.java', 'b/c/D.java'],
  );
});

test('links in a circle end, and a file with two names is read once', async (t) => {
  const folder = makeFolder(t, { 'a/A.java': text });
  symlinkSync('..', join(folder, 'a/up'));
  symlinkSync('.', join(folder, 'here'));
  symlinkSync('a/A.java', join(folder, 'b.java'));
  const files = await readJavaFiles(folder);
  assert.deepEqual(
    files.map((file) => [file.path, file.text === undefined ? file.problem?.kind : 'read']),
    [
      ['a/A.java', 'read'],
      ['b.java', 'link'],
    ],
  );
});

test('a link that leads nowhere, or to itself, is unreadable', async (t) => {
  const folder = makeFolder(t, { 'A.java': text });
  symlinkSync('nothing', join(folder, 'B.java'));
  symlinkSync('C.java', join(folder, 'C.java'));
  symlinkSync('nothing', join(folder, 'not-java'));
  const files = await readJavaFiles(folder);
  assert.deepEqual(
    files.map(({ path, problem }) => `${path} ${problem?.reason}`),
    ['A.java undefined', 'B.java cannot be read (ENOENT)', 'C.java cannot be read (ELOOP)'],
  );
});

test('a pipe is not waited for', async (t) => {
  const folder = makeFolder(t, { 'A.java': text });
  execFileSync('mkfifo', [join(folder, 'B.java')]);
  const files = await readJavaFiles(folder);
  assert.equal(files[1]?.problem?.kind, 'unreadable');
});

test('files and folders without permission are unreadable', async (t) => {
  const folder = makeFolder(t, { 'A.java': text, 'B.java': text, 'c/C.java': text });
  chmodSync(folder, 0o755);
  chmodSync(join(folder, 'B.java'), 0);
  chmodSync(join(folder, 'c'), 0);
  const files = await withoutPrivileges(() => readJavaFiles(folder));
  assert.deepEqual(
    files.map(({ path, problem }) => `${path} ${problem?.reason}`),
    ['A.java undefined', 'B.java cannot be read (EACCES)', 'c cannot be read (EACCES)'],
  );
});

/** Runs `act` as another user if this is root, which may read everything. */
async function withoutPrivileges<T>(act: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return act();
  process.seteuid?.(65534);
  try {
    return await act();
  } finally {
    process.seteuid?.(0);
  }
}

test('a folder that is not there is the only failure', async () => {
  await assert.rejects(readJavaFiles('/nowhere'), { code: 'ENOENT' });
});
