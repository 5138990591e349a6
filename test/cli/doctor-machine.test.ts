// Findings of `manycore doctor` about a machine.

import assert from 'node:assert/strict';
import { totalmem } from 'node:os';
import { test } from 'node:test';
import {
  coresFinding,
  debuggingFinding,
  descriptorsFinding,
  memoryFinding,
  partitionFindings,
  poolSizeFinding,
  traceFinding,
} from '../../src/cli/commands/doctor/doctor-machine.js';
import { groupsOf } from '../../src/cli/commands/doctor/doctor-quota.js';
import { missingTraceRights } from '../../src/proc/index.js';
import { partitionLayers, vmPrograms } from '../../src/worker/index.js';
import { unwell } from './findings.js';

const MiB = 1024 ** 2;

// Values of Node under a quota, by release line, on a machine with four cores.
for (const [quota, granted, seen, state] of [
  ['0.50', 1, 4, 'advice'],
  ['1.50', 2, 4, 'advice'],
  ['1.50', 2, 1, 'info'],
  ['2.50', 3, 4, 'advice'],
  ['2.50', 3, 2, 'info'],
] as const) {
  test(`under a quota of ${quota} cores ${granted} count, and a Node that counts ${seen} is ${state}`, () => {
    const finding = coresFinding({ count: granted, reason: `quota ${quota}` }, seen, 4);
    assert.equal(finding.state, state);
    assert.match(
      finding.detail,
      RegExp(`^${granted} granted: .*availableParallelism\\(\\) says ${seen}`),
    );
    assert.equal(finding.remedy === undefined, state === 'info');
  });
}

test('cores that Node counts correctly, or that MANYCORE_CORES sets, need no advice', () => {
  assert.equal(coresFinding({ count: 4, reason: 'affinity' }, 4, 4).detail, '4 granted: affinity');
  assert.equal(coresFinding({ count: 1, reason: 'MANYCORE_CORES=1' }, 4, 4).state, 'info');
});

for (const [given, cores, expected] of [
  [undefined, 2, []],
  ['8', 2, []],
  ['16', 2, []],
  ['64', 2, ['UV_THREADPOOL_SIZE: advice']],
  ['64', 16, []],
  ['', 2, ['UV_THREADPOOL_SIZE: advice']],
  ['many', 2, ['UV_THREADPOOL_SIZE: advice']],
] as const) {
  test(`UV_THREADPOOL_SIZE=${given} on ${cores} cores`, () => {
    assert.deepEqual(unwell(poolSizeFinding(given, cores)), expected);
  });
}

test('a low limit of descriptors is advice', () => {
  const limits = (most: string) =>
    `Limit  Soft Limit  Hard Limit\nMax open files            1024                 ${most}                 files`;
  assert.deepEqual(unwell(descriptorsFinding(limits('1024'))), ['descriptors: advice']);
  assert.deepEqual(unwell(descriptorsFinding(limits('524288'))), []);
  assert.deepEqual(unwell(descriptorsFinding(limits('unlimited'))), []);
  assert.deepEqual(descriptorsFinding(''), []);
});

test('a heap that may grow beyond the granted memory is advice', () => {
  assert.deepEqual(unwell(memoryFinding(512 * MiB, 4096 * MiB)), ['memory: advice']);
  assert.match(memoryFinding(512 * MiB, 4096 * MiB)[0]?.remedy ?? '', /--max-old-space-size=384$/);
  assert.deepEqual(unwell(memoryFinding(512 * MiB, 256 * MiB)), []);
  for (const none of [0, totalmem(), 2 ** 64])
    assert.deepEqual(memoryFinding(none, 4096 * MiB), []);
});

test('rights are read from the mask of capabilities', () => {
  assert.deepEqual(missingTraceRights('CapEff:\t0000000000000000\n'), ['CAP_BPF', 'CAP_PERFMON']);
  assert.deepEqual(missingTraceRights('CapEff:\t000000c000000000\n'), []);
  assert.deepEqual(missingTraceRights('CapEff:\t0000004000000000\n'), ['CAP_BPF']);
  assert.deepEqual(missingTraceRights('CapEff:\t0000000000200000\n'), []); // CAP_SYS_ADMIN
});

test('rights that trace lacks are named with what they cost, and so is a kernel without BTF', () => {
  const rights = {
    missing: [],
    hasOuterPids: true,
    hasTypes: true,
    paranoid: '2',
    isTracefsReadable: true,
  };
  assert.equal(traceFinding(rights)[0]?.state, 'ok');
  const without = traceFinding({ ...rights, missing: ['CAP_BPF'] })[0];
  assert.match(without?.remedy ?? '', /CAP_BPF/);
  assert.match(without?.cost ?? '', /trace -- COMMAND counts system calls/);
  const inside = traceFinding({ ...rights, hasOuterPids: false })[0];
  assert.equal(inside?.state, 'info');
  assert.match(inside?.remedy ?? '', /from outside/);
  const old = traceFinding({ ...rights, hasTypes: false })[0];
  assert.match(old?.remedy ?? '', /CONFIG_DEBUG_INFO_BTF/);
  assert.deepEqual(traceFinding(undefined), []);
});

test('a kernel that closes processes to each other is reported', () => {
  assert.deepEqual(debuggingFinding(''), []);
  assert.deepEqual(debuggingFinding('0\n'), []);
  assert.match(debuggingFinding('1\n')[0]?.detail ?? '', /ptrace_scope is 1$/);
});

test('the groups of a process lead up to the mount, in version 1 and 2, also in a container', () => {
  const v1 = '40 30 0:33 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct';
  assert.deepEqual(groupsOf('4:memory:/x\n3:cpu,cpuacct:/a/b\n', v1), [
    '/sys/fs/cgroup/cpu,cpuacct/a/b',
    '/sys/fs/cgroup/cpu,cpuacct/a',
    '/sys/fs/cgroup/cpu,cpuacct',
  ]);
  const v2 = '31 24 0:27 /docker/x /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw';
  assert.deepEqual(groupsOf('0::/docker/x\n', v2), ['/sys/fs/cgroup']);
  assert.deepEqual(groupsOf('0::/docker/x/y\n', v2), ['/sys/fs/cgroup/y', '/sys/fs/cgroup']);
  assert.deepEqual(groupsOf('nonsense', 'more nonsense'), []);
});

test('each layer of a sandbox and each program of a virtual machine has a line', () => {
  const layers = [
    { what: 'bubblewrap', problem: undefined, detail: '/usr/bin/bwrap' },
    { what: 'Landlock', problem: 'this kernel has none', detail: 'version 0' },
  ];
  const programs = {
    kernel: { path: '/usr/bin/linux.uml' },
    runsc: { problem: 'it is not there' },
  };
  assert.deepEqual(partitionFindings(layers, programs), [
    { what: 'sandbox: bubblewrap', state: 'ok', detail: '/usr/bin/bwrap' },
    { what: 'sandbox: Landlock', state: 'info', detail: 'this kernel has none' },
    { what: 'vm: kernel', state: 'ok', detail: '/usr/bin/linux.uml' },
    { what: 'vm: runsc', state: 'info', detail: 'it is not there' },
  ]);
  assert.deepEqual(partitionFindings([], programs), []);
});

test('a program of partitions that is missing is named with its package', {
  skip: process.platform !== 'linux' && 'partitions need Linux',
}, (t) => {
  const path = process.env['PATH'];
  process.env['PATH'] = '/nowhere';
  t.after(() => {
    process.env['PATH'] = path;
  });
  const findings = partitionFindings(partitionLayers(), vmPrograms());
  assert.deepEqual(unwell(findings), []); // a program that needs no partition is well
  const details = new Map(findings.map(({ what, detail }) => [what, detail]));
  assert.match(details.get('sandbox: bubblewrap') ?? '', /install the package bubblewrap$/);
  assert.match(details.get('vm: runsc') ?? '', /install the package runsc$/);
  const kernel = process.arch === 'x64' ? /install the package user-mode-linux/ : /x64 machine/;
  assert.match(details.get('vm: kernel') ?? '', kernel);
});
