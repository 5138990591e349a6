// The experiment with transactional memory: how structures scale with the processes that share them.

import type { Stored } from './results.js';
import type { Section } from './section.js';

const processCounts = [1, 2, 4];
/** Structures by the name of their setting. */
const structureNames = {
  'list-100': 'linked list, 100',
  'elastic-list-100': 'tlist, 100',
  'tree-100': 'red-black tree, 100',
  'tree-10000': 'red-black tree, 10,000',
  'map-10000': 'tsortedMap, 10,000',
};
type Structure = keyof typeof structureNames;

const processesOf = (count: number): string => `${count}-process${count === 1 ? '' : 'es'}`;

/** The operations of `count` against those of one, as a factor. */
function gainOf(stored: Stored, setting: Structure, count: number, isGhc = false): string {
  const contender = (many: number): string => (isGhc ? `ghc-${many}` : processesOf(many));
  const from = [setting, contender(1)] as const;
  return stored.times('stm', 'perSecond', from, [setting, contender(count)]);
}

/** The experiment with transactions, for some of the structures. */
function transactions(
  name: string,
  title: string,
  settings: readonly Structure[],
  ours: (stored: Stored) => string,
): Section {
  const inGhc = (stored: Stored, setting: Structure): boolean =>
    stored.contenders('stm', setting).includes('ghc-1');
  return {
    name,
    title,
    from: 'stm',
    source:
      'The study of Haskell on 64 cores, with transactional memory: a linked list scaled with the cores, a red-black tree did not, so message channels were built next to it.',
    ours,
    chart: (stored) => ({
      title,
      unit: 'operations per second, half of them searches, a quarter each that adds or removes',
      scale: 'log',
      series: processCounts.map((count) => `${count} process${count === 1 ? '' : 'es'}`),
      groups: settings.flatMap((setting) => [
        {
          label: structureNames[setting],
          bars: processCounts.map((count) =>
            stored.spread('stm', setting, processesOf(count), 'perSecond'),
          ),
        },
        ...(inGhc(stored, setting)
          ? [
              {
                label: 'the same in GHC',
                bars: processCounts.map((count) =>
                  stored.spread('stm', setting, `ghc-${count}`, 'perSecond'),
                ),
              },
            ]
          : []),
      ]),
      notes: ['GHC: threads of one process with one heap, as many as processes beside them.'],
    }),
  };
}

export const smallSet = transactions(
  'stm-small',
  'Transactions on a small set, by number of processes',
  ['list-100', 'elastic-list-100', 'tree-100'],
  (stored) => {
    const gain = (setting: Structure): string => gainOf(stored, setting, 2);
    const ghc = stored.where(
      'stm',
      'ghc-1',
      () =>
        ` In GHC, whose threads share a heap, it is ${gainOf(stored, 'list-100', 2, true)} times for the list and ${gainOf(stored, 'tree-100', 2, true)} for the tree.`,
    );
    const crowded = stored.times(
      'stm',
      'perSecond',
      ['tree-100', processesOf(2)],
      ['tree-100', processesOf(4)],
    );
    return `A set of 100 numbers, two processes against one: ${gain('list-100')} times as many operations with a linked list whose way is read as a whole, ${gain('elastic-list-100')} with \`tlist\`, ${gain('tree-100')} with a red-black tree.${ghc} What stopped the tree on 64 cores, changes near its root that all others have read, does not show on ${stored.cores('stm')}. Four processes on these cores do ${crowded} times the operations of two with the tree: a transaction undoes the commit of one that has no core, instead of waiting for it.`;
  },
);

export const largeSet = transactions(
  'stm-large',
  'Transactions on a large set, by number of processes',
  ['tree-10000', 'map-10000'],
  (stored) => {
    const gain = (setting: Structure): string => gainOf(stored, setting, 2);
    const times = stored.times(
      'stm',
      'perSecond',
      ['tree-10000', processesOf(2)],
      ['map-10000', processesOf(2)],
    );
    return `A set of 10,000: two processes do ${gain('tree-10000')} times the operations of one with the red-black tree, and ${gain('map-10000')} with \`tsortedMap\`, which has ${times} times the operations of the tree there: a leaf of it is one read and one write, and nothing above the leaves is in shared memory, so nothing there can be fought over.`;
  },
);
