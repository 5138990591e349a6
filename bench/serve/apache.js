// Apache httpd as a rival for files and CGI programs: its process models with their own default sizes,
// run from a configuration of a few lines. It is installed where it is missing and `apt-get` may.
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const binary = '/usr/sbin/apache2';
const modules = '/usr/lib/apache2/modules';

/** The program, the model and what it needs for CGI: threads start programs through a daemon. */
export const models = { event: 'cgid', worker: 'cgid', prefork: 'cgi' };

export function ensureApache() {
  if (existsSync(binary)) return;
  execFileSync('apt-get', ['install', '-y', '--no-install-recommends', 'apache2-bin'], {
    stdio: 'ignore',
  });
}

/** The command that serves `root/files` and, under /cgi-bin/, `root/programs`. */
export function apacheCommand(model, root, port) {
  ensureApache();
  const load = (name) => `LoadModule ${name}_module ${modules}/mod_${name}.so`;
  const config = [
    `ServerRoot ${root}`,
    `PidFile ${root}/pid`,
    `Listen 127.0.0.1:${port}`,
    'ServerName localhost',
    ...['authz_core', 'mime', 'alias', `mpm_${model}`, models[model]].map(load),
    `TypesConfig ${root}/types`,
    `ErrorLog ${root}/errors`,
    ...(models[model] === 'cgid' ? [`ScriptSock ${root}/cgi`] : []),
    // A process for each connection from the start: it would take seconds to come to them.
    ...(model === 'prefork' ? ['StartServers 24', 'MinSpareServers 8', 'MaxSpareServers 32'] : []),
    'KeepAlive On',
    'MaxKeepAliveRequests 0',
    'EnableSendfile On',
    `DocumentRoot ${root}/files`,
    `ScriptAlias /cgi-bin/ ${root}/programs/`,
    `<Directory ${root}>`,
    '  Require all granted',
    '</Directory>',
    '',
  ];
  writeFileSync(join(root, 'types'), 'text/html html\n');
  writeFileSync(join(root, 'apache.conf'), config.join('\n'));
  return [binary, '-D', 'FOREGROUND', '-f', join(root, 'apache.conf')];
}
