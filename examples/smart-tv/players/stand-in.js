// The example's own player process, ../player.js: one command a line, one answer a line.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { converse } from './conversation.js';

const program = fileURLToPath(new URL('../player.js', import.meta.url));

export function startStandIn() {
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const { say, died } = converse(child, child.stdin, child.stdout, (line) =>
    /^(ok|unknown) /.test(line),
  );
  return { child, died, send: (command) => say(`${command}\n`) };
}
