// Servers for tests.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { nativeBinding } from '../../src/native.js';
import { type ServedApp, type ServeOptions, serve } from '../../src/serve/index.js';

/** The program of apps/listens.ts. */
export const listens = fileURLToPath(new URL('./apps/listens.js', import.meta.url));
export const skip = nativeBinding() === undefined && 'needs the native core';

/** Serves from one process with two loops; ends with the test. */
export async function open(
  t: TestContext,
  app: string,
  options: ServeOptions = {},
): Promise<ServedApp> {
  const server = await serve(app, { processes: 1, loops: 2, drainTimeoutMs: 5000, ...options });
  t.after(() => server.close());
  return server;
}

/** A folder that ends with the test. */
export function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'manycore-serve-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A program of this text in a folder of its own. */
export function program(t: TestContext, name: string, text: string): string {
  const path = join(folder(t), name);
  writeFileSync(path, text);
  return path;
}

/** Announcements under this name until the end of the test; grows. */
export function announced(t: TestContext, name: string): readonly Record<string, unknown>[] {
  const messages: Record<string, unknown>[] = [];
  const listener = (message: unknown): void => void messages.push(Object(message));
  subscribe(name, listener);
  t.after(() => unsubscribe(name, listener));
  return messages;
}

/** Why other users cannot serve here; `false` when they can. */
export function othersNeedRoot(): string | false {
  if (process.getuid?.() !== 0) return 'only root may start processes of other users';
  let path = fileURLToPath(import.meta.url);
  while (path !== dirname(path)) {
    path = dirname(path);
    if ((statSync(path).mode & 0o005) !== 0o005) return `other users may not read ${path}`;
  }
  return false;
}
