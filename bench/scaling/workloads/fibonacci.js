// Pure computing: nothing is allocated, nothing is shared, an item is one number.
import { fib } from '../../lib/tasks.js';
import { random } from '../random.js';

const itemCount = 2000;

export default {
  says: `${itemCount.toLocaleString('en-US')} × fib(20…23), 0.15 to 0.6 ms each`,
  open() {
    const below = random(1);
    return { items: Array.from({ length: itemCount }, () => 20 + below(4)), map: fib };
  },
};
