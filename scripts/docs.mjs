// npm run docs: writes the site of docs/ into dist/site, static files for any server. VitePress makes the
// pages, typedoc the types of every export, below api/. A dead link between pages fails. The tools of the
// site have a package.json of their own (docs/), installed here at the first run: nothing else needs them.
//   SITE_BASE=/manycore/   path of the site on its server, with slashes at both ends
import { existsSync, rmSync } from 'node:fs';
import { run } from './lib/run.mjs';

const home = 'docs';
const publicFolder = 'dist/site-public';

if (!existsSync(`${home}/node_modules/vitepress`)) {
  await step('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: home });
}
rmSync(publicFolder, { recursive: true, force: true });
await step('node_modules/.bin/typedoc', [
  ...['--out', `${publicFolder}/api`, '--treatWarningsAsErrors', '--logLevel', 'Warn'],
]);
await step('node_modules/.bin/vitepress', ['build', '.'], { cwd: home });
console.log('the site is in dist/site');

async function step(command, args, options) {
  const { status } = await run(command, args, options);
  if (status !== 0) process.exit(status);
}
