// The command line of a worker on gVisor: `manycore-enter run` makes control groups, bubblewrap a folder with all files
// of the partition, and runsc a container in it. Landlock and the filter of a sandbox would refuse runsc itself, which
// has namespaces and a filter of its own.
// Not here: the description of the container (crates/enter/src/gvisor.rs).

import { dirname } from 'node:path';
import { limits, readable, type SandboxedProgram, variables } from './command-line.js';
import { type Binding, nodeFiles } from './files.js';
import { guestEnter } from './guest.js';
import { partitionTools, runscPath } from './layers.js';

/** Places as crates/enter has them. */
const root = '/.manycore/root';
const runsc = '/.manycore/runsc';
const mib = 2 ** 20;

/**
 * Returns the program to start, and its arguments. `fileMb`: that of the options. `hasChannel`: descriptors 0 and 1
 * are a channel. Throws `PARTITION_UNAVAILABLE`.
 */
export function gvisorLine(
  program: SandboxedProgram,
  fileMb: number,
  hasChannel: boolean,
): string[] {
  const { sandbox, command } = program;
  const { enter, bubblewrap } = partitionTools(sandbox.allow);
  const own = { from: enter, to: guestEnter };
  const shown = [...program.bindings, ...readable(sandbox)];
  return [
    ...[enter, 'run', ...limits(program), '--'],
    ...[bubblewrap, '--unshare-all', '--die-with-parent', '--new-session'],
    // The rights of root over these namespaces alone: runsc makes its own in them.
    ...['--uid', '0', '--gid', '0', '--hostname', 'partition', '--cap-add', 'ALL'],
    ...variables(sandbox),
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--tmpfs', '/run'],
    ...[...shown, own].map(inRoot).flatMap(bound),
    // `enter` itself needs the loader and its libraries, too.
    ...nodeFiles().flatMap(({ to }) => ['--symlink', root + to, to]),
    ...[own, { from: runscPath(), to: runsc }].flatMap(bound),
    ...sandbox.write.flatMap((path) => ['--dir', root + path, '--bind', path, root + path]),
    ...['proc', 'dev', 'sys', 'tmp'].flatMap((name) => ['--dir', `${root}/${name}`]),
    ...['--remount-ro', '/', '--', guestEnter, 'gvisor'],
    ...['--file-bytes', `${fileMb * mib}`, ...(hasChannel ? ['--channel'] : [])],
    ...shown.flatMap(({ to }) => ['--read', to]),
    ...sandbox.write.flatMap((path) => ['--write', path]),
    ...['--', ...command],
  ];
}

function inRoot({ from, to }: Binding): Binding {
  return { from, to: root + to };
}

/** The folder first: bubblewrap makes those above a file for its own user alone. */
function bound({ from, to }: Binding): string[] {
  return ['--dir', dirname(to), '--ro-bind', from, to];
}
