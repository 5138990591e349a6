import { move } from 'piscina';
import { touch } from '../../lib/tasks.js';

export * from '../../lib/tasks.js';

export function touchAndMove(bytes) {
  return move(touch(bytes));
}
