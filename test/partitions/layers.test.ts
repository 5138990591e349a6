// The parts of sandboxes for reports: each has a line, whatever is missing.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hasCode } from '../../src/errors.js';
import {
  fillPartition,
  partitionLayers,
  sandboxAround,
  type VmOptions,
  vmPrograms,
} from '../../src/worker/index.js';
import { refusalOf } from '../../src/worker/partition/ends.js';
import { checkLayers, parseLayers, toolsFrom } from '../../src/worker/partition/layers.js';
import { wayToNamespaces } from '../../src/worker/partition/namespaces.js';
import { folder } from './hostile.js';
import { type Engine, skip, skipVm } from './support.js';

const probing = fileURLToPath(new URL('fixtures/problem.js', import.meta.url));
const command = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
/** A user that owns nothing. */
const nobody = 65534;

interface Outcome {
  /** The message of `partitionProblem`, and that of a call; `undefined`: there was none. */
  readonly problem?: string;
  readonly failure?: string;
  readonly code?: string;
  readonly value?: unknown;
}

/** A call on a worker with these options, in a program of its own. */
function outcomeOf(worker: object, options: Parameters<typeof spawnSync>[2] = {}): Outcome {
  const words = [probing, JSON.stringify(worker)];
  const { stdout, stderr } = spawnSync(process.execPath, words, { ...options, encoding: 'utf8' });
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout);
}

function around(options: VmOptions) {
  const vm = fillPartition(options);
  assert.ok(vm.kind === 'vm');
  return sandboxAround(vm);
}

const all = ['manycore-enter', 'bubblewrap', 'namespaces', 'Landlock', 'seccomp', 'control groups'];

test('each part of a sandbox that is there has a line without a problem', { skip }, () => {
  const layers = partitionLayers();
  assert.deepEqual(
    layers.map(({ what }) => what),
    all,
  );
  assert.deepEqual(
    layers.flatMap(({ problem }) => problem ?? []),
    [],
  );
});

test('a part that is missing hides no other', { skip }, (t) => {
  const path = process.env['PATH'];
  process.env['PATH'] = '';
  t.after(() => {
    process.env['PATH'] = path;
  });
  const layers = partitionLayers();
  assert.deepEqual(
    layers.map(({ what }) => what),
    all.filter((what) => what !== 'namespaces'),
  );
  const problems = layers.flatMap(({ what, problem }) => (problem === undefined ? [] : [what]));
  assert.deepEqual(problems, ['bubblewrap']);
  assert.match(layers[1]?.problem ?? '', /install the package bubblewrap/);
});

test('a refusal for what the system may have again is tried again, any other is not', () => {
  const codeOf = (line: string): unknown => Object(refusalOf(125, `manycore-enter: ${line}`)).code;
  assert.equal(codeOf('fork: Resource temporarily unavailable (os error 11)'), 'EAGAIN');
  assert.equal(codeOf('clone: Cannot allocate memory'), 'EAGAIN');
  assert.equal(codeOf('Landlock: not supported'), 'PARTITION_UNAVAILABLE');
  assert.equal(refusalOf(1, 'another line'), undefined);
});

test('a guest of User-mode Linux keeps Landlock, whatever is allowed', () => {
  const allow = ['no-landlock', 'no-cgroup'] as const;
  const allowed = (engine: 'uml' | 'gvisor'): readonly string[] =>
    around({ kind: 'vm', engine, allow }).allow;
  assert.deepEqual(allowed('uml'), ['no-cgroup']);
  assert.deepEqual(allowed('gvisor'), ['no-landlock', 'no-cgroup']);
});

const refusal = 'bwrap: No permissions to create a new namespace';
const kinds: readonly [name: string, worker: object, skip: string | false][] = [
  ['sandbox', { kind: 'sandbox' }, skip],
  ...(['uml', 'gvisor'] satisfies Engine[]).map((engine): [string, object, string | false] => [
    engine,
    { kind: 'vm', engine },
    skipVm(engine),
  ]),
];
for (const [name, worker, skip] of kinds) {
  test(`${name}: namespaces that are refused are one sentence with a way out`, { skip }, (t) => {
    const path = folder(t);
    const fake = join(path, 'bwrap');
    writeFileSync(fake, `#!/bin/sh\necho "${refusal}" >&2\nexit 1\n`);
    chmodSync(fake, 0o755);
    const env = { ...process.env, PATH: `${path}:${process.env['PATH']}` };
    const { problem, failure, code } = outcomeOf(worker, { env });
    const sentence =
      / may make no namespaces \(bwrap: No perm.+\): .+ allow them(?:$|; the next start)/;
    for (const text of [problem, failure]) assert.match(text ?? '', sentence);
    assert.equal(code, 'PARTITION_UNAVAILABLE');
    if (name !== 'sandbox') return;
    const file = join(path, 'program.mjs');
    writeFileSync(file, 'console.log("it ran")');
    const words = [command, 'sandbox', file];
    const { status, stderr, stdout } = spawnSync(process.execPath, words, {
      env,
      encoding: 'utf8',
    });
    assert.match(stderr, /may make no namespaces .* allow them \(PARTITION_UNAVAILABLE\)/);
    assert.deepEqual([status, stdout], [2, '']);
  });
}

test('the way to namespaces is the setting that refuses them', () => {
  const wayWith = (own: Readonly<Record<string, string>>): string =>
    wayToNamespaces((name) => own[name] ?? '', '/usr/bin/bwrap');
  assert.match(wayWith({}), /^in a container, .*seccomp=unconfined/);
  const allowed = {
    'user.max_user_namespaces': '9',
    'kernel.unprivileged_userns_clone': '1',
    'kernel.apparmor_restrict_unprivileged_userns': '0',
  };
  assert.equal(wayWith(allowed), wayWith({}));
  for (const [name, value] of Object.entries(allowed)) {
    const refusing = { ...allowed, [name]: value === '0' ? '1' : '0' };
    assert.ok(wayWith(refusing).includes(`sysctl ${name}=`), name);
  }
});

/** All that a kernel may have, as `manycore-enter probe` prints it. */
const whole = { landlock: 4, seccomp: true, groups: 2, groupsProblem: '' };
const missing = [
  ['no-landlock', { landlock: 0 }, /no Landlock of version 2/],
  ['no-landlock', { landlock: 1 }, /no Landlock of version 2/],
  ['no-seccomp', { seccomp: false }, /no seccomp/],
  ['no-cgroup', { groups: 0, groupsProblem: 'EACCES' }, /no control group .*EACCES.*Delegate=yes/],
] as const;
for (const [layer, offer, reason] of missing) {
  test(`a kernel with ${JSON.stringify(offer)} is refused, unless ${layer} is allowed`, () => {
    const layers = parseLayers(JSON.stringify({ ...whole, ...offer }));
    const others = (['no-cgroup', 'no-landlock', 'no-seccomp'] as const).filter(
      (each) => each !== layer,
    );
    for (const allow of [[], others]) {
      assert.throws(
        () => checkLayers(layers, allow),
        (error) => {
          assert.ok(hasCode(error, 'PARTITION_UNAVAILABLE'));
          assert.match(String(error), reason);
          assert.ok(String(error).endsWith(`allow: ['${layer}'] goes on without`), String(error));
          return true;
        },
      );
    }
    checkLayers(layers, [layer]);
    checkLayers(parseLayers(JSON.stringify(whole)), []);
  });
}

test('a probe that answers nothing, or something else, has found no layer', () => {
  for (const text of [undefined, '', 'no JSON', '5', '[]', '{"landlock":"4","seccomp":1}']) {
    const { landlock, seccomp, groups, groupsProblem } = parseLayers(text);
    assert.deepEqual([landlock, seccomp, groups], [0, false, 0]);
    assert.match(groupsProblem, /does not answer/);
  }
});

test('a program that is missing is named, with its package', () => {
  const { execPath } = process;
  const problemOf = (enter: string, bubblewrap?: string): unknown => {
    try {
      return toolsFrom(enter, bubblewrap);
    } catch (error) {
      assert.ok(hasCode(error, 'PARTITION_UNAVAILABLE'));
      return String(error);
    }
  };
  assert.match(String(problemOf('/no/manycore-enter', execPath)), /manycore-enter.*build:native/);
  assert.match(String(problemOf(execPath)), /install the package bubblewrap/);
  assert.deepEqual(problemOf(execPath, execPath), { enter: execPath, bubblewrap: execPath });
});

test('guests are refused on machines that are not x64, whatever the engine', { skip }, (t) => {
  const { arch } = process;
  Object.defineProperty(process, 'arch', { value: 'riscv64' });
  t.after(() => Object.defineProperty(process, 'arch', { value: arch }));
  for (const program of Object.values(vmPrograms())) {
    assert.ok('problem' in program);
    assert.match(program.problem, /guests need an x64 machine, and this is riscv64: use kind/);
  }
});

const asOther =
  skip ||
  (process.getuid?.() !== 0 && 'another user is started by root alone') ||
  (!isReadableByOthers(probing) && 'another user cannot read the tests');

for (const allow of [[], ['no-cgroup']] as const) {
  test(`a user without rights to groups, with allow: ${JSON.stringify(allow)}`, {
    skip: asOther,
  }, () => {
    const { problem, failure, code, value } = outcomeOf(
      { kind: 'sandbox', allow },
      { uid: nobody, gid: nobody },
    );
    if (allow.length > 0) {
      assert.deepEqual([problem, failure, value], [undefined, undefined, 42]);
      return;
    }
    for (const text of [problem, failure]) {
      assert.match(text ?? '', /no control group .*Delegate=yes.*allow: \['no-cgroup'\] goes on/);
    }
    assert.equal(code, 'PARTITION_UNAVAILABLE');
  });
}

test('a sandbox goes on without groups where they could be made', { skip }, () => {
  assert.equal(outcomeOf({ kind: 'sandbox', allow: ['no-cgroup'] }).value, 42);
});

function isReadableByOthers(path: string): boolean {
  const ids = { uid: nobody, gid: nobody };
  return spawnSync(process.execPath, ['--check', path], ids).status === 0;
}
