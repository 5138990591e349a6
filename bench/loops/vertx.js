// Vert.x's own bus: a small Java program, built once by Maven where there is one.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../rivals/vertx/', import.meta.url));

/** Throws where there is no Java or no Maven. */
export function ensureVertx() {
  if (existsSync(join(folder, 'target', 'vertx-bus.jar'))) return;
  execFileSync('mvn', ['-q', '-B', 'package'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

export function vertxClasses() {
  return `${join(folder, 'target', 'vertx-bus.jar')}:${join(folder, 'target', 'lib')}/*`;
}
