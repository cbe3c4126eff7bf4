/**
 * Names as a tree by their dotted paths, and as a table: what the grid draws, in flat arrays.
 *
 * Names come in byte order, in which those of one prefix stand together, so one pass builds the
 * nodes; only siblings are then sorted, numbers by value. The nodes lie in depth-first order and
 * `end[i]` is one past the last below `i`: opening and closing move no data.
 */

/** @import { Columns } from "./columns.mjs" */

// A name of a thousand dots is one deep label, not a thousand levels.
const DEEPEST = 40;

/**
 * @typedef {{
 *   label: string[], level: Uint8Array, tensor: Int32Array, end: Uint32Array, open: Uint8Array,
 *   tensors: Uint32Array, nbytes: Float64Array,
 * }} Tree
 *   `tensor` is the index of a leaf's tensor, −1 for a group.
 */

/**
 * @param {string[]} names All names.
 * @param {Uint32Array} chosen Which of them, in byte order of the names.
 * @param {Float64Array} sizes Bytes of each name.
 * @returns {Tree}
 */
export function buildTree(names, chosen, sizes) {
  /** @typedef {{ label: string, tensor: number, children: Branch[] | null }} Branch */
  /** @type {Branch[]} */
  const top = [];
  /** @type {Branch[][]} */
  const lists = [top];
  /** @type {string[]} */
  let path = [];
  let total = 0;
  for (const index of chosen) {
    const parts = split(names[index]);
    const last = parts.length - 1;
    let depth = 0;
    while (depth < path.length && depth < last && path[depth] === parts[depth]) depth += 1;
    lists.length = depth + 1;
    for (; depth < last; depth += 1) {
      /** @type {Branch[]} */
      const children = [];
      lists[depth].push({ label: parts[depth], tensor: -1, children });
      lists.push(children);
      total += 1;
    }
    lists[last].push({ label: parts[last], tensor: index, children: null });
    total += 1;
    path = parts.slice(0, last);
  }
  /** @type {Tree} */
  const tree = {
    label: new Array(total),
    level: new Uint8Array(total),
    tensor: new Int32Array(total),
    end: new Uint32Array(total),
    open: new Uint8Array(total),
    tensors: new Uint32Array(total),
    nbytes: new Float64Array(total),
  };
  let at = 0;
  /** @param {Branch[]} branches @param {number} level */
  const lay = (branches, level) => {
    sortSiblings(branches);
    for (const branch of branches) {
      const { label, tensor, children } = folded(branch);
      const here = at;
      at += 1;
      tree.label[here] = label;
      tree.level[here] = level;
      tree.tensor[here] = tensor;
      if (children) {
        lay(children, level + 1);
        for (let child = here + 1; child < at; child = tree.end[child]) {
          tree.tensors[here] += tree.tensors[child];
          tree.nbytes[here] += tree.nbytes[child];
        }
      } else {
        tree.tensors[here] = 1;
        tree.nbytes[here] = sizes[tensor];
      }
      tree.end[here] = at;
    }
  };
  lay(top, 1);
  return at === total ? tree : cut(tree, at);
}

/**
 * A group of one is no group: what it holds takes its label in front, as long as that goes.
 *
 * @template {{ label: string, tensor: number, children: any[] | null }} Branch
 * @param {Branch} branch
 * @returns {Branch}
 */
function folded(branch) {
  let inner = branch;
  let { label } = branch;
  while (inner.children?.length === 1) {
    [inner] = inner.children;
    label = `${label}.${inner.label}`;
  }
  return inner === branch ? branch : { ...inner, label };
}

/** @param {Tree} tree @param {number} count @returns {Tree} */
function cut(tree, count) {
  tree.label.length = count;
  const { label, level, tensor, end, open, tensors, nbytes } = tree;
  return {
    label,
    level: level.slice(0, count),
    tensor: tensor.slice(0, count),
    end: end.slice(0, count),
    open: open.slice(0, count),
    tensors: tensors.slice(0, count),
    nbytes: nbytes.slice(0, count),
  };
}

/** @param {string} name */
function split(name) {
  const parts = name.split(".");
  return parts.length <= DEEPEST ? parts : [...parts.slice(0, DEEPEST - 1), parts.slice(DEEPEST - 1).join(".")];
}

const DIGITS = /^\d+$/;

/**
 * Put numbers first and in numeric order; the rest is in byte order already.
 *
 * @param {{ label: string }[]} siblings
 */
function sortSiblings(siblings) {
  const numbers = siblings.filter(({ label }) => DIGITS.test(label));
  if (!numbers.length) return;
  numbers.sort((a, b) => a.label.length - b.label.length || (a.label < b.label ? -1 : a.label > b.label ? 1 : 0));
  const rest = siblings.filter(({ label }) => !DIGITS.test(label));
  siblings.splice(0, siblings.length, ...numbers, ...rest);
}

/**
 * Open so much that a small file shows whole and a large one its first level.
 *
 * @param {Tree} tree
 * @param {number} most How many rows may become visible.
 */
export function openSome(tree, most) {
  const count = tree.label.length;
  if (count <= most) {
    tree.open.fill(1);
    return;
  }
  const perLevel = new Uint32Array(DEEPEST + 2);
  for (const level of tree.level) perLevel[level] += 1;
  let shown = perLevel[1];
  for (let level = 1; level <= DEEPEST && shown + perLevel[level + 1] <= most; level += 1) {
    shown += perLevel[level + 1];
    for (let at = 0; at < count; at += 1) if (tree.level[at] === level) tree.open[at] = 1;
  }
}

/**
 * The nodes that are shown, in order.
 *
 * @param {Tree} tree
 */
export function shownNodes(tree) {
  const count = tree.label.length;
  const shown = new Uint32Array(count);
  let found = 0;
  for (let at = 0; at < count; ) {
    shown[found] = at;
    found += 1;
    at = tree.tensor[at] >= 0 || tree.open[at] ? at + 1 : tree.end[at];
  }
  return shown.subarray(0, found);
}

/**
 * Open every group above the leaf of a tensor.
 *
 * @param {Tree} tree
 * @param {number} tensor
 * @returns {number} Its node, or −1.
 */
export function reveal(tree, tensor) {
  const node = tree.tensor.indexOf(tensor);
  for (let at = 0; at < node; ) {
    if (tree.end[at] > node) {
      tree.open[at] = 1;
      at += 1;
    } else {
      at = tree.end[at];
    }
  }
  return node;
}

/**
 * @typedef {"name" | "dtype" | "shape" | "nbytes" | "offset"} SortKey
 */

/**
 * Sort indices by a column; equal ones stay in the order of their names.
 *
 * @param {Columns} columns
 * @param {Uint32Array} chosen In byte order of the names.
 * @param {SortKey} key
 * @param {boolean} descending
 */
export function sorted(columns, chosen, key, descending) {
  const sign = descending ? -1 : 1;
  if (key === "name") return descending ? chosen.slice().reverse() : chosen;
  /** @type {ArrayLike<number>} */
  let values;
  if (key === "dtype") values = ranks(columns.dtypes, columns.dtype);
  else if (key === "shape") values = shapeRanks(columns);
  else values = columns[key];
  return chosen.slice().sort((a, b) => sign * (values[a] - values[b]) || a - b);
}

/** @param {string[]} table @param {ArrayLike<number>} codes */
function ranks(table, codes) {
  const order = table.map((_, at) => at).sort((a, b) => (table[a] < table[b] ? -1 : 1));
  const rank = new Uint32Array(table.length);
  order.forEach((code, at) => {
    rank[code] = at;
  });
  return Uint32Array.from(codes, (code) => rank[code]);
}

/** @param {Columns} columns By dimensions from the first on, fewer before more. */
function shapeRanks({ shapes, shape }) {
  const order = shapes.map((_, at) => at).sort((a, b) => {
    const [one, two] = [shapes[a], shapes[b]];
    if (one.length !== two.length) return one.length - two.length;
    const at = one.findIndex((dim, axis) => dim !== two[axis]);
    return at < 0 ? 0 : one[at] - two[at];
  });
  const rank = new Uint32Array(shapes.length);
  order.forEach((code, at) => {
    rank[code] = at;
  });
  return Uint32Array.from(shape, (code) => rank[code]);
}
