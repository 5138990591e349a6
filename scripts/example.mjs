// npm run example NAME -- …: runs examples/NAME/main.js with the other arguments, in this process, so that it
// gets the terminal and the signals. Relative paths start at the folder in which npm was called.
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';

const folder = fileURLToPath(new URL('../examples', import.meta.url));
const mainOf = (name) => `${folder}/${name}/main.js`;
const names = readdirSync(folder).filter((name) => existsSync(mainOf(name)));

const [name, ...args] = process.argv.slice(2);
if (names.includes(name)) {
  if (process.env['npm_lifecycle_event'] === 'example') process.chdir(process.env['INIT_CWD']);
  process.argv = [process.execPath, mainOf(name), ...args];
  await import(pathToFileURL(mainOf(name)));
} else {
  const wrong = name === undefined ? 'no name is given' : `there is no example "${name}"`;
  console.error(`example: ${wrong}: give one of ${names.join(', ')}`);
  process.exitCode = 2;
}
