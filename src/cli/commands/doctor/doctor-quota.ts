// Reads the CPU quota of any process from its control groups: number of cores, and how often the kernel
// halted the group because the quota was used up. Versions 1 and 2 of cgroups(7). For the own process the
// native binary reads it (crates/core/src/cpu/cgroup.rs).

import { join } from 'node:path';
import { textOf } from '../../../proc/index.js';

/** Quota of the tightest of the groups of a process. */
export interface CpuQuota {
  readonly cores: number;
  /** Number of enforcement periods with work, and of those in which the quota was used up. */
  readonly periods: number;
  readonly halts: number;
}

/** `folder`: the process in /proc. `undefined`: no quota. */
export function quotaOf(folder: string): CpuQuota | undefined {
  const groups = groupsOf(textOf(`${folder}/cgroup`), textOf('/proc/self/mountinfo'));
  const quotas = groups.flatMap((group) => readQuota(group) ?? []);
  return quotas.sort((a, b) => a.cores - b.cores)[0];
}

/** The folders of all groups that limit a process, innermost first; from two files of proc(5). */
export function groupsOf(membership: string, mounts: string): string[] {
  return membership.split('\n').flatMap((line) => {
    const [, id, controllers = '', group = ''] = /^(\d+):([^:]*):(\/.*)$/.exec(line) ?? [];
    if (id === '0' && controllers === '') return upwards(mountOf(mounts, 'cgroup2', ''), group);
    if (!controllers.split(',').includes('cpu')) return [];
    return upwards(mountOf(mounts, 'cgroup', 'cpu'), group);
  });
}

interface Mount {
  /** The group that is mounted at `point`. */
  readonly root: string;
  readonly point: string;
}

function mountOf(mounts: string, kind: string, controller: string): Mount | undefined {
  for (const line of mounts.split('\n')) {
    const [left = '', right = ''] = line.split(' - ');
    const [, , , root = '', point = ''] = left.split(' ');
    const [found, , options = ''] = right.split(' ');
    const hasController = controller === '' || options.split(',').includes(controller);
    if (found === kind && hasController) return { root, point };
  }
  return undefined;
}

/** Folders of a group and its ancestors. In a container the mount has the group itself as its root. */
function upwards(mount: Mount | undefined, group: string): string[] {
  if (mount === undefined) return [];
  const root = mount.root.replace(/\/$/, '');
  const below = group.startsWith(root) ? group.slice(root.length) : '';
  const names = below.split('/').filter((name) => name !== '');
  return [...names, '']
    .map((_, at) => names.slice(0, names.length - at))
    .map((part) => join(mount.point, ...part));
}

function readQuota(group: string): CpuQuota | undefined {
  const [quota = '', period = ''] = textOf(`${group}/cpu.max`).trim().split(' ');
  const text = {
    quota: quota === '' ? textOf(`${group}/cpu.cfs_quota_us`) : quota,
    period: period === '' ? textOf(`${group}/cpu.cfs_period_us`) : period,
  };
  const cores = Number(text.quota) / Number(text.period); // "max" and -1: no limit
  if (!(cores > 0 && cores < Number.POSITIVE_INFINITY)) return undefined;
  const stat = textOf(`${group}/cpu.stat`);
  const countOf = (name: string): number =>
    Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1] ?? 0);
  return { cores, periods: countOf('nr_periods'), halts: countOf('nr_throttled') };
}
