// `manycore init systemd` and `init docker`: files to copy, for a program that `manycore serve` runs.

import { existsSync, realpathSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, relative, resolve, sep } from 'node:path';
import { CodedError } from '../../../errors.js';
import { nativeProblem } from '../../../native.js';
import { checkName, nameOfProgram } from '../../../serve/index.js';
import { type File, output } from './output.js';

export interface InitFlags {
  readonly name?: string;
  /** A unit of the user's own systemd. */
  readonly user?: boolean;
  /** Writes the file to this folder. */
  readonly write?: boolean;
}

/** Time for a drain (30 s), listeners of the program (5 s), and the end itself. */
const stopSeconds = 40;
const openFiles = 65_536;

/** Prints the unit of systemd, or writes it. Throws `CLI_FILE_NOT_FOUND`, `OPTION_INVALID`. */
export function initSystemd(app: string, args: readonly string[], flags: InitFlags): void {
  output(systemdUnit(programOf(app), args, flags), flags.write === true);
}

/** Prints the Dockerfile, or writes it. Throws as `initSystemd`. */
export function initDocker(app: string, args: readonly string[], flags: InitFlags): void {
  output(dockerfile(programOf(app), args), flags.write === true);
}

function programOf(app: string): string {
  const path = resolve(app);
  if (existsSync(path)) return path;
  throw new CodedError('CLI_FILE_NOT_FOUND', `there is no file ${path}: give the program to serve`);
}

function systemdUnit(app: string, args: readonly string[], flags: InitFlags): File {
  const name = flags.name === undefined ? nameOfProgram(app) : checkName('--name', flags.name);
  const folder = dirname(app);
  const isUser = flags.user === true;
  const command = [process.execPath, commandPath(), 'serve', app, '--name', name, ...args];
  const file = `${name}.service`;
  const at = isUser ? '~/.config/systemd/user' : '/etc/systemd/system';
  const ctl = isUser ? 'systemctl --user' : 'sudo systemctl';
  const install = isUser ? `install -D ${file} ${at}/${file}` : `sudo cp ${file} ${at}/`;
  const hasNotices = nativeProblem() === undefined;
  const lines = [
    `# ${at}/${file}`,
    '[Unit]',
    `Description=${name}, served by manycore`,
    ...(isUser ? [] : ['Wants=network-online.target', 'After=network-online.target']),
    '',
    '[Service]',
    `Type=${hasNotices ? 'notify' : 'exec'}`,
    ...(hasNotices ? ['NotifyAccess=main', 'WatchdogSec=30'] : []),
    ...(isUser ? [] : [`User=${userInfo().username}`]),
    `WorkingDirectory=${escaped(folder)}`,
    'Environment=NODE_ENV=production',
    `ExecStart=${command.map(quoted).join(' ')}`,
    'ExecReload=/bin/kill -HUP $MAINPID',
    'KillMode=mixed',
    `TimeoutStopSec=${stopSeconds}`,
    'Restart=always',
    'RestartSec=1',
    `LimitNOFILE=${openFiles}`,
    '',
    '[Install]',
    `WantedBy=${isUser ? 'default' : 'multi-user'}.target`,
    '',
  ];
  const linger = isUser ? ['loginctl enable-linger   # starts it at boot, before you log in'] : [];
  const next = [install, `${ctl} daemon-reload`, `${ctl} enable --now ${name}`, ...linger];
  return { name: file, text: lines.join('\n'), next };
}

/** Specifiers, as %h, are none of systemd's in a path. */
function escaped(text: string): string {
  return text.replaceAll('%', '%%');
}

/** A word of a command line of systemd (systemd.service(5), "Command lines"). */
function quoted(word: string): string {
  const text = escaped(word).replaceAll('$', '$$$$');
  return /^[\w./:=@%$,+-]+$/.test(text) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** Path of this command. Throws `OPTION_INVALID` for one that npx has put into its cache. */
function commandPath(): string {
  const path = realpathSync(process.argv[1] ?? '');
  if (!path.includes(`${sep}_npx${sep}`)) return path;
  const message =
    'manycore is in the cache of npx, which may be emptied: run npm install manycore first';
  throw new CodedError('OPTION_INVALID', message);
}

function dockerfile(app: string, args: readonly string[]): File {
  const [major] = process.versions.node.split('.');
  const path = relative(process.cwd(), app).split(sep).join('/');
  if (path.startsWith('..')) {
    const message = `${app} is outside of this folder, which the image gets: run it in the folder of the project`;
    throw new CodedError('OPTION_INVALID', message);
  }
  const command = ['node_modules/.bin/manycore', 'serve', path, ...args];
  const lines = [
    `FROM node:${major}-slim`,
    'ENV NODE_ENV=production',
    'WORKDIR /app',
    'COPY package*.json ./',
    'RUN npm ci --omit=dev',
    'COPY . .',
    'USER node',
    'EXPOSE 3000',
    '# Without npm and npx, which do not pass signals on. As process 1 it reaps orphans itself.',
    `CMD ${JSON.stringify(command)}`,
    '',
  ];
  const next = [
    'docker build -t app .',
    `docker run -p 3000:3000 --stop-timeout ${stopSeconds} --tmpfs /tmp app`,
  ];
  return { name: 'Dockerfile', text: lines.join('\n'), next };
}
