import { Tinypool } from 'tinypool';
import { touch } from '../../lib/tasks.js';

export * from '../../lib/tasks.js';

export function touchAndMove(bytes) {
  return Tinypool.move(touch(bytes));
}
