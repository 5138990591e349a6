// Allocation: object graphs and strings that live for one item, so that the collector works as well.
import { random } from '../random.js';

const itemCount = 1000;

export default {
  says: `${itemCount.toLocaleString('en-US')} × 40 orders made, written as JSON, read again, sorted and grouped`,
  open() {
    return { items: Array.from({ length: itemCount }, (_, index) => index + 1), map: reportOrders };
  },
};

/** Makes orders from `seed`, sends them through JSON and answers the best customers in a line. */
function reportOrders(seed) {
  const below = random(seed);
  const orders = Array.from({ length: 40 }, (_, id) => makeOrder(id, below));
  const read = JSON.parse(JSON.stringify(orders));
  read.sort((a, b) => (a.customer.name < b.customer.name ? -1 : 1));
  const spent = new Map();
  for (const { customer, lines } of read) {
    const total = lines.reduce((sum, { count, price }) => sum + count * price, 0);
    spent.set(customer.city, (spent.get(customer.city) ?? 0) + total);
  }
  return [...spent]
    .sort(([, a], [, b]) => b - a)
    .map(([city, total]) => `${city.toUpperCase()}: ${total.toFixed(2)}`)
    .join(', ');
}

function makeOrder(id, below) {
  const name = `${below(1e6).toString(36)} ${below(1e9).toString(36)}`;
  return {
    id,
    customer: { name, city: `city ${below(12)}`, tags: name.split(' ').map((word) => `#${word}`) },
    lines: Array.from({ length: 1 + below(8) }, (_, line) => ({
      item: `${id}-${line}-${below(1e6).toString(16)}`,
      count: 1 + below(9),
      price: below(10_000) / 100,
    })),
  };
}
