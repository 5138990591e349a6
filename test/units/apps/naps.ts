// A unit that blocks its loop once it has started, until there is the file that its configuration names.
import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import type { UnitContext } from '../../../src/public.js';

export function start({ config }: UnitContext<string>): void {
  void wait(100).then(function nap() {
    while (!existsSync(config));
  });
}
