// A unit that is a module's `start`, without a default export.
import type { UnitContext } from '../../../src/public.js';

export function start({ bus, name }: UnitContext): () => void {
  bus.consumer('name', (message) => message.reply(name));
  return () => {
    bus.publish('gone', name);
  };
}
