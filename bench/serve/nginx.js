// nginx as a rival for files: a process for each core, with sendfile and a cache of open files, run from a
// configuration of a few lines. It is installed where it is missing and `apt-get` may.
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

const binary = '/usr/sbin/nginx';

export function ensureNginx() {
  if (existsSync(binary)) return;
  execFileSync('apt-get', ['install', '-y', '--no-install-recommends', 'nginx-light'], {
    stdio: 'ignore',
  });
}

/** The command that serves `root/files`. */
export function nginxCommand(root, port) {
  ensureNginx();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `  ${name}_temp_path ${root}/temporary;`,
  );
  const config = [
    'daemon off;',
    `pid ${root}/pid;`,
    `error_log ${root}/errors;`,
    `worker_processes ${availableParallelism()};`,
    'events {}',
    'http {',
    ...temporary,
    '  access_log off;',
    '  types { text/html html; }',
    '  sendfile on;',
    '  tcp_nopush on;',
    '  keepalive_requests 1000000000;',
    '  open_file_cache max=1000;',
    `  server { listen 127.0.0.1:${port}; root ${root}/files; }`,
    '}',
    '',
  ];
  writeFileSync(join(root, 'nginx.conf'), config.join('\n'));
  return [binary, '-p', root, '-e', join(root, 'errors'), '-c', join(root, 'nginx.conf')];
}
