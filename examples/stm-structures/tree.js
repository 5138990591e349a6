// A red-black tree of transactional variables (Guibas, Sedgewick 1978), as textbooks have it: search from the root,
// change, then repair upwards. Each place of a node is a variable, so that two changes in different parts of the tree
// write different variables.
import { atomically, free, tvar } from 'manycore/stm';

/** Returns the place of the root of an empty tree. A node is `{ key, isRed, left, right }`, an empty place `null`. */
export function make() {
  return tvar(null);
}

const otherSide = { left: 'right', right: 'left' };

function isRed(place) {
  return place.get()?.isRed === true;
}

function paint(place, red) {
  const node = place.get();
  if (node !== null && node.isRed !== red) place.set({ ...node, isRed: red });
}

/** Moves the node of a place down; its child on `side` comes up. Returns the place where it is now. */
function rotate(place, side) {
  const node = place.get();
  const below = node[side];
  const child = below.get();
  below.set({ ...node, [side]: child[otherSide[side]] });
  place.set({ ...child, [otherSide[side]]: below });
  return below;
}

function sideOf(place, parent) {
  return parent.get().left === place ? 'left' : 'right';
}

/** The places on the way to `key`: the last one has it, or is empty. */
function pathTo(root, key) {
  const path = [root];
  for (let node = root.get(); node !== null && node.key !== key; node = path.at(-1).get()) {
    path.push(key < node.key ? node.left : node.right);
  }
  return path;
}

export function has(root, key) {
  return atomically(() => pathTo(root, key).at(-1).get() !== null);
}

/** False: it was there. */
export function add(root, key) {
  return atomically(() => {
    const path = pathTo(root, key);
    const place = path.at(-1);
    if (place.get() !== null) return false;
    place.set({ key, isRed: true, left: tvar(null), right: tvar(null) });
    repairRed(path);
    paint(root, false);
    return true;
  });
}

/** The node at the end of `path` is red, and its parent may be, too. */
function repairRed(path) {
  let at = path.length - 1;
  while (at >= 2 && isRed(path[at - 1])) {
    const [grandparent, parent, place] = path.slice(at - 2, at + 1);
    const side = sideOf(parent, grandparent);
    const uncle = grandparent.get()[otherSide[side]];
    if (isRed(uncle)) {
      paint(parent, false);
      paint(uncle, false);
      paint(grandparent, true);
      at -= 2;
    } else {
      if (sideOf(place, parent) !== side) rotate(parent, otherSide[side]);
      paint(grandparent, true);
      paint(parent, false);
      rotate(grandparent, side);
      return;
    }
  }
}

/** False: it was not there. */
export function remove(root, key) {
  return atomically(() => {
    const path = pathTo(root, key);
    const found = path.at(-1);
    const node = found.get();
    if (node === null) return false;
    if (node.left.get() !== null && node.right.get() !== null) {
      path.push(node.right);
      while (path.at(-1).get().left.get() !== null) path.push(path.at(-1).get().left);
      found.set({ ...node, key: path.at(-1).get().key });
    }
    takeOut(path);
    return true;
  });
}

/** Takes out the node at the end of `path`, which has one child at most. */
function takeOut(path) {
  const place = path.at(-1);
  const { isRed: wasRed, left, right } = place.get();
  place.set(left.get() ?? right.get());
  free(left);
  free(right);
  if (wasRed) return;
  if (isRed(place)) paint(place, false);
  else repairBlack(path);
}

/** The place at the end of `path` has one black node too few below it. */
function repairBlack(path) {
  for (let at = path.length - 1; at > 0; at -= 1) {
    const [parent, place] = path.slice(at - 1, at + 1);
    const side = sideOf(place, parent);
    const other = otherSide[side];
    let upper = parent;
    if (isRed(parent.get()[other])) {
      paint(parent.get()[other], false);
      paint(parent, true);
      upper = rotate(parent, other);
    }
    const sibling = upper.get()[other];
    const near = sibling.get()[side];
    if (!isRed(near) && !isRed(sibling.get()[other])) {
      paint(sibling, true);
      if (!isRed(upper)) continue;
      paint(upper, false);
      return;
    }
    if (!isRed(sibling.get()[other])) {
      paint(near, false);
      paint(sibling, true);
      rotate(sibling, side);
    }
    const wasRed = isRed(upper);
    paint(sibling.get()[other], false);
    paint(sibling, wasRed);
    paint(upper, false);
    rotate(upper, other);
    return;
  }
}

export function keys(root) {
  return atomically(() => {
    const found = [];
    const visit = (place) => {
      const node = place.get();
      if (node === null) return;
      visit(node.left);
      found.push(node.key);
      visit(node.right);
    };
    visit(root);
    return found;
  });
}
