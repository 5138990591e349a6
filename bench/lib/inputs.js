// What the calls are given.

/** 127 bytes as JSON while `id` has one digit: two levels, text, a float, an array and a boolean. */
export function makeOrder(id) {
  return {
    id,
    name: 'lamp',
    price: 42.5,
    tags: ['new', 'home', 'gift'],
    address: { city: 'Utrecht', street: 'Oude 15' },
    isPaid: false,
  };
}
