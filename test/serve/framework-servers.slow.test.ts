// Servers that frameworks generate, served as they are. Their packages come from the registry: without it, or with a
// release that does not build here, the test of a framework is skipped with the reason.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { freePort } from '../support/index.js';
import { bodyOf, portOf } from './client.js';
import { folder, open } from './served.js';

const run = promisify(execFile);
const [major = 0] = process.versions.node.split('.').map(Number);
const limitMs = 180_000;

interface Framework {
  readonly name: string;
  readonly packages: readonly string[];
  readonly files: Readonly<Record<string, string>>;
  /** Arguments of `npx`; empty: its files run as they are. */
  readonly build: readonly string[];
  /** The program, and its arguments. */
  readonly program: readonly [string, ...string[]];
  /** True: its package is of CommonJS. */
  readonly isCommonJs?: boolean;
}

const frameworks: readonly Framework[] = [
  {
    name: 'Next, standalone',
    packages: ['next', 'react', 'react-dom'],
    files: {
      'app/layout.js': 'export default ({ children }) => <html><body>{children}</body></html>;',
      'app/page.js': `export const dynamic = 'force-dynamic';
        export default () => <h1>answer</h1>;`,
      'next.config.mjs': `export default { output: 'standalone' };`,
    },
    build: ['next', 'build'],
    program: ['.next/standalone/server.js'],
    isCommonJs: true,
  },
  {
    name: 'Astro, standalone',
    packages: ['astro', '@astrojs/node'],
    files: {
      'astro.config.mjs': `import node from '@astrojs/node';
        export default { output: 'server', adapter: node({ mode: 'standalone' }) };`,
      'src/pages/index.astro': '<h1>answer</h1>',
    },
    build: ['astro', 'build'],
    program: ['dist/server/entry.mjs'],
  },
  {
    name: 'React Router (Remix)',
    packages: [
      'react-router',
      '@react-router/node',
      '@react-router/serve',
      '@react-router/dev',
      'vite',
      'react',
      'react-dom',
      'isbot',
    ],
    files: {
      'app/root.jsx': `import { Outlet } from 'react-router';
        export default () => <html><body><Outlet /></body></html>;`,
      'app/routes.js': `import { index } from '@react-router/dev/routes';
        export default [index('routes/home.jsx')];`,
      'app/routes/home.jsx': 'export default () => <h1>answer</h1>;',
      'vite.config.js': `import { reactRouter } from '@react-router/dev/vite';
        export default { plugins: [reactRouter()] };`,
    },
    build: ['react-router', 'build'],
    program: ['node_modules/@react-router/serve/bin.cjs', './build/server/index.js'],
  },
  {
    name: 'SvelteKit, adapter-node',
    packages: [
      'svelte',
      '@sveltejs/kit',
      '@sveltejs/adapter-node',
      '@sveltejs/vite-plugin-svelte',
      'vite',
    ],
    files: {
      'vite.config.js': `import adapter from '@sveltejs/adapter-node';
        import { sveltekit } from '@sveltejs/kit/vite';
        export default { plugins: [sveltekit({ adapter: adapter() })] };`,
      'src/app.html':
        '<!doctype html><html><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>',
      'src/routes/+page.svelte': '<h1>answer</h1>',
    },
    build: ['vite', 'build'],
    program: ['build/index.js'],
  },
  {
    name: 'Nuxt',
    packages: ['nuxt'],
    files: {
      'app.vue': '<template><h1>answer</h1></template>',
      'nuxt.config.mjs': `export default { telemetry: false, compatibilityDate: '2025-01-01' };`,
    },
    build: ['nuxt', 'build'],
    program: ['.output/server/index.mjs'],
  },
  {
    name: 'AdonisJS',
    packages: ['@adonisjs/core@6', 'reflect-metadata'],
    files: {
      'build/adonisrc.js': `import { defineConfig } from '@adonisjs/core/app';
        export default defineConfig({
          providers: [() => import('@adonisjs/core/providers/app_provider')],
          preloads: [() => import('./start/routes.js')],
        });`,
      'build/config/app.js': `import { Secret } from '@adonisjs/core/helpers';
        import { defineConfig } from '@adonisjs/core/http';
        export const appKey = new Secret('a key of at least thirty-two characters');
        export const http = defineConfig({});`,
      'build/config/logger.js': `import { defineConfig } from '@adonisjs/core/logger';
        export default defineConfig({ default: 'app', loggers: { app: { enabled: false } } });`,
      'build/start/routes.js': `import router from '@adonisjs/core/services/router';
        router.get('/', () => '<h1>answer</h1>');`,
      // The form of its starter kits.
      'build/bin/server.js': `import 'reflect-metadata';
        import { Ignitor, prettyPrintError } from '@adonisjs/core';
        const root = new URL('../', import.meta.url);
        const importer = (path) => import(path.startsWith('.') ? new URL(path, root).href : path);
        new Ignitor(root, { importer })
          .tap((app) => {
            app.listen('SIGTERM', () => app.terminate());
            app.listenIf(app.managedByPm2, 'SIGINT', () => app.terminate());
          })
          .httpServer()
          .start()
          .catch((error) => {
            process.exitCode = 1;
            prettyPrintError(error);
          });`,
    },
    build: [],
    program: ['build/bin/server.js'],
  },
  {
    name: 'log4js with disableClustering',
    packages: ['log4js'],
    files: {
      'app.js': `import { createServer } from 'node:http';
        import log4js from 'log4js';
        log4js.configure({
          appenders: { all: { type: 'recording' } },
          categories: { default: { appenders: ['all'], level: 'info' } },
          disableClustering: true,
        });
        createServer((request, response) => {
          log4js.getLogger().info('a line');
          response.end(log4js.recording().replay().length > 0 ? 'answer' : 'no line');
        }).listen(process.env.PORT);`,
    },
    build: [],
    program: ['app.js'],
  },
];

/** Installs and builds; returns the reason when that is impossible here. */
async function prepare(root: string, framework: Framework): Promise<string | undefined> {
  const { packages, files, build, isCommonJs = false } = framework;
  const type = isCommonJs ? {} : { type: 'module' };
  const all = { ...files, 'package.json': JSON.stringify({ private: true, ...type }) };
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  const silent = { NEXT_TELEMETRY_DISABLED: '1', ASTRO_TELEMETRY_DISABLED: '1', CI: '1' };
  // npm and the builds run under this release of Node, too.
  const path = `${dirname(process.execPath)}:${process.env['PATH']}`;
  const env = { ...process.env, ...silent, PATH: path };
  const options = { cwd: root, timeout: limitMs, env };
  const flags = ['--no-audit', '--no-fund', '--legacy-peer-deps', '--prefer-offline'];
  try {
    await run('npm', ['install', ...flags, ...packages], options);
    if (build.length > 0) await run('npm', ['exec', '--', ...build], options);
    return undefined;
  } catch (error) {
    const { stderr = '', message = '' }: { stderr?: string; message?: string } = Object(error);
    return `cannot be installed and built here: ${(stderr || message).trim().slice(0, 300)}`;
  }
}

async function answersUnchanged(t: TestContext, framework: Framework): Promise<void> {
  const root = folder(t);
  const reason = await prepare(root, framework);
  if (reason !== undefined) {
    t.skip(reason);
    return;
  }
  const [name, ...args] = framework.program;
  const port = await freePort();
  const settings = { PORT: String(port), HOST: '127.0.0.1', HOSTNAME: '127.0.0.1' };
  const before = { ...process.env };
  const folderBefore = process.cwd();
  Object.assign(process.env, settings);
  process.chdir(root);
  t.after(() => {
    process.chdir(folderBefore);
    for (const each of Object.keys(settings)) delete process.env[each];
    Object.assign(process.env, before);
  });
  for (const [processes, loops] of [
    [1, 1],
    [1, 2],
    [2, 2],
  ] as const) {
    const server = await open(t, join(root, name), { processes, loops, args });
    for (let asked = 0; asked < 8; asked += 1) {
      assert.match(await bodyOf(portOf(server)), /answer/);
    }
    await server.reload();
    assert.match(await bodyOf(portOf(server)), /answer/);
    await server.close();
  }
}

for (const framework of frameworks) {
  test(
    `${framework.name}: the server that it builds runs unchanged`,
    {
      skip: major < 22 && 'the frameworks need newer releases of Node',
    },
    (t) => answersUnchanged(t, framework),
  );
}
