// Imports of Node's modules in the bundle (scripts/lib/builtin-imports.mjs).

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { withoutBuiltinImports } = await import(
  new URL('../../../scripts/lib/builtin-imports.mjs', import.meta.url).href
);

/** A statement, and what stands for it. */
const forms: readonly (readonly [string, string])[] = [
  [`import { join } from 'node:path';`, `const { join } = process.getBuiltinModule('node:path')!;`],
  [
    `import { setTimeout as wait } from 'node:timers/promises';`,
    `const { setTimeout: wait } = process.getBuiltinModule('node:timers/promises')!;`,
  ],
  [
    `import * as types from 'node:util/types';`,
    `const types = process.getBuiltinModule('node:util/types')!;`,
  ],
  [`import vm from 'node:vm';`, `const vm = process.getBuiltinModule('node:vm')!;`],
  [
    `import threads, { type Transferable, Worker } from 'node:worker_threads';`,
    `import { type Transferable } from 'node:worker_threads';` +
      `const threads = process.getBuiltinModule('node:worker_threads')!; ` +
      `const { Worker } = process.getBuiltinModule('node:worker_threads')!;`,
  ],
  [
    `import {\n  existsSync,\n  statSync,\n} from 'node:fs';`,
    `const { existsSync, statSync } = process.getBuiltinModule('node:fs')!;\n\n\n`,
  ],
  [`import type { Socket } from 'node:net';`, `import type { Socket } from 'node:net';`],
  [`import { Link } from '../link.js';`, `import { Link } from '../link.js';`],
];

for (const [statement, made] of forms) {
  test(`in the bundle: ${statement.split('\n').join(' ')}`, () => {
    assert.equal(
      withoutBuiltinImports(`// First.\n${statement}\nnext();`),
      `// First.\n${made}\nnext();`,
    );
  });
}

for (const statement of [
  `import {} from 'node:fs';`,
  `import 'node:fs';`,
  `export { join } from 'node:path';`,
  `import { default as fs } from 'node:fs';`,
]) {
  test(`a form that is not known fails the build: ${statement}`, () => {
    assert.throws(() => withoutBuiltinImports(statement), /not an import/);
  });
}
