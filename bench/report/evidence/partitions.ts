// The experiment with partitions: Fibonacci numbers divided over workers of each kind.

import { NotMeasured, type Stored } from './results.js';
import type { Section } from './section.js';

/** Kinds of workers by contender, from the least to the most separated. Guests are not on every machine. */
const kinds = {
  thread: 'threads',
  process: 'processes',
  sandbox: 'sandboxes',
  uml: 'guests of User-mode Linux',
  gvisor: 'guests of gVisor',
};
type Kind = keyof typeof kinds;

const isKind = (name: string): name is Kind => Object.hasOwn(kinds, name);

const settingOf = (workers: number): string => `fibonacci-${workers}`;

/** Numbers of workers that were measured, in their order. */
function countsOf(stored: Stored): number[] {
  const found = stored.settings('partitions').flatMap((setting) => {
    const [, count] = /^fibonacci-(\d+)$/.exec(setting) ?? [];
    return count === undefined ? [] : [Number(count)];
  });
  return found.sort((one, other) => one - other);
}

function kindsOf(stored: Stored): Kind[] {
  const measured = stored.contenders('partitions', settingOf(1));
  return Object.keys(kinds)
    .filter(isKind)
    .filter((kind) => measured.includes(kind));
}

export const partitions: Section = {
  name: 'partitions',
  title: 'Fibonacci numbers by kind of workers',
  from: 'partitions',
  source:
    'The study of partitions with a kernel for each core: the numbers up to fib(40), divided over guests of HaLVM on 10 cores, are done 9.69 times as fast as in one; over system threads of one Haskell program (`forkOS`) 4.56 times.',
  ours: (stored) => {
    const most = countsOf(stored).at(-1) ?? 1;
    if (most === 1) throw new NotMeasured('more workers than one');
    const text = (kind: Kind): string => stored.text('partitions', settingOf(1), kind, 'totalMs');
    const gain = (kind: Kind): string => {
      const of = (workers: number) => [settingOf(workers), kind] as const;
      return stored.times('partitions', 'totalMs', of(most), of(1));
    };
    const shown = kindsOf(stored);
    const gains = shown.map((kind) => `${gain(kind)} with ${kinds[kind]}`).join(', ');
    const guests = shown.includes('uml') || shown.includes('gvisor');
    const missing = guests ? '' : ' Guests with a kernel of their own are not measured here.';
    return `In ms, one worker: ${text('process')} in a process, ${text('sandbox')} in a sandbox. Times as fast with ${most} workers as with one: ${gains}. Code that only computes makes no system calls, and those are what the walls are for; the case also has the price of a call there and back.${missing} The numbers and the picture for your machine: \`npm run example partitions\`.`;
  },
  chart: (stored) => ({
    title: 'Fibonacci numbers by number and kind of workers',
    unit: 'ms of a fixed amount of work, on workers that have started',
    scale: 'linear',
    series: kindsOf(stored).map((kind) => kinds[kind]),
    groups: countsOf(stored).map((workers) => ({
      label: `${workers} worker${workers === 1 ? '' : 's'}`,
      bars: kindsOf(stored).map((kind) =>
        stored.spread('partitions', settingOf(workers), kind, 'totalMs'),
      ),
    })),
    notes: [],
  }),
};
