// Vert.x itself: small Java programs, built once by Maven where there is one.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../rivals/vertx/', import.meta.url));

/** Throws where there is no Java or no Maven. */
export function ensureVertx() {
  const jar = join(folder, 'target', 'vertx-bus.jar');
  const source = join(folder, 'src', 'main', 'java');
  const newest = Math.max(
    ...readdirSync(source).map((file) => statSync(join(source, file)).mtimeMs),
  );
  if (existsSync(jar) && statSync(jar).mtimeMs > newest) return;
  execFileSync('mvn', ['-q', '-B', 'package'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

export function vertxClasses() {
  return `${join(folder, 'target', 'vertx-bus.jar')}:${join(folder, 'target', 'lib')}/*`;
}

/** True: Vert.x can be used here; otherwise prints the cause. */
export function hasVertx() {
  try {
    ensureVertx();
    return true;
  } catch (error) {
    console.error(`! Vert.x is left out: ${error.message}`);
    return false;
  }
}
