// A sorted linked list of transactional variables, as a beginner writes it: each transaction reads its way from the
// head. The list of the measurements of Harris, Marlow, Peyton Jones and Herlihy (2005).
import { atomically, free, tvar } from 'manycore/stm';

/** Returns the head of a list of these sorted numbers. Each node is `{ key, next }`. */
export function makeList(keys) {
  let next = tvar(null);
  for (const key of keys.toReversed()) next = tvar({ key, next });
  return next;
}

/** The variable of the node with the first key that is not below `key`: of the end, if there is none. */
function find(head, key) {
  let at = head;
  for (let node = at.get(); node !== null && node.key < key; node = at.get()) at = node.next;
  return at;
}

export function has(head, key) {
  return atomically(() => find(head, key).get()?.key === key);
}

/** Adds `key`, or removes it where it is. */
export function toggle(head, key) {
  atomically(() => {
    const at = find(head, key);
    const node = at.get();
    if (node?.key !== key) {
      at.set({ key, next: tvar(node) });
      return;
    }
    at.set(node.next.get());
    free(node.next);
  });
}

/** Half of the operations search a key, half change one; returns how many ran in `windowMs`. */
export function work(head, keys, { warmMs, windowMs }) {
  const pick = () => Math.floor(Math.random() * keys);
  const once = () => {
    if (Math.random() < 0.5) has(head, pick());
    else toggle(head, pick());
  };
  const repeat = (forMs) => {
    let count = 0;
    for (const end = performance.now() + forMs; performance.now() < end; count += 1) once();
    return count;
  };
  repeat(warmMs);
  return repeat(windowMs);
}
