// A sorted linked list of transactional variables, as a beginner writes it: each transaction reads its way from the
// head. The list of the measurements of Harris, Marlow, Peyton Jones and Herlihy (2005).
import { atomically, free, tvar } from 'manycore/stm';

/** Returns the head of an empty list. Each node is `{ key, next }`. */
export function make() {
  return tvar(null);
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

/** False: it was there. */
export function add(head, key) {
  return atomically(() => {
    const at = find(head, key);
    const node = at.get();
    if (node?.key === key) return false;
    at.set({ key, next: tvar(node) });
    return true;
  });
}

/** False: it was not there. */
export function remove(head, key) {
  return atomically(() => {
    const at = find(head, key);
    const node = at.get();
    if (node?.key !== key) return false;
    at.set(node.next.get());
    free(node.next);
    return true;
  });
}

export function keys(head) {
  return atomically(() => {
    const found = [];
    for (let node = head.get(); node !== null; node = node.next.get()) found.push(node.key);
    return found;
  });
}
