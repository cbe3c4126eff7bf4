/** Which names contain a text, match a glob, or match a regular expression. */

/** @typedef {"text" | "glob" | "regex"} FilterKind */

/**
 * All names that contain `text`, upper and lower case alike.
 *
 * @param {string[]} names
 * @param {string} text
 */
export function containing(names, text) {
  const wanted = text.toLowerCase();
  return indicesOf(names, (name) => name.toLowerCase().includes(wanted));
}

/**
 * All names that a glob matches whole: `*` is any run of characters, `?` any one, `[abc]` one of
 * them, `[!abc]` none of them.
 *
 * @param {string[]} names
 * @param {string} glob
 */
export function matchingGlob(names, glob) {
  const parts = globParts(glob);
  return indicesOf(names, (name) => globMatches(parts, name));
}

/** @param {string[]} names @param {(name: string) => boolean} wanted */
function indicesOf(names, wanted) {
  const found = new Uint32Array(names.length);
  let count = 0;
  for (let index = 0; index < names.length; index += 1) {
    if (wanted(names[index])) {
      found[count] = index;
      count += 1;
    }
  }
  return found.slice(0, count);
}

/** @typedef {"*" | ((char: string) => boolean)} GlobPart */

/**
 * @param {string} glob
 * @returns {GlobPart[]}
 */
function globParts(glob) {
  /** @type {GlobPart[]} */
  const parts = [];
  for (let at = 0; at < glob.length; at += 1) {
    const char = glob[at];
    const close = char === "[" ? glob.indexOf("]", at + (glob[at + 1] === "!" ? 3 : 2)) : -1;
    if (char === "*") {
      if (parts.at(-1) !== "*") parts.push("*");
    } else if (char === "?") {
      parts.push(() => true);
    } else if (close > 0) {
      parts.push(charClass(glob.slice(at + 1, close)));
      at = close;
    } else {
      parts.push((other) => other === char);
    }
  }
  return parts;
}

/** @param {string} body What stands between the brackets. */
function charClass(body) {
  const negated = body.startsWith("!");
  const text = negated ? body.slice(1) : body;
  /** @type {[string, string][]} */
  const ranges = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at + 1] === "-" && at + 2 < text.length) {
      ranges.push([text[at], text[at + 2]]);
      at += 2;
    } else {
      ranges.push([text[at], text[at]]);
    }
  }
  return (/** @type {string} */ char) => ranges.some(([low, high]) => low <= char && char <= high) !== negated;
}

/**
 * Match by going back to the last star only, which bounds the work by the product of the lengths: a
 * regular expression made of the glob would not be bounded.
 *
 * @param {GlobPart[]} parts
 * @param {string} name
 */
function globMatches(parts, name) {
  let [part, char, star, retry] = [0, 0, -1, 0];
  while (char < name.length) {
    const wanted = parts[part];
    if (wanted === "*") {
      star = part;
      retry = char;
      part += 1;
    } else if (wanted?.(name[char])) {
      part += 1;
      char += 1;
    } else if (star >= 0) {
      retry += 1;
      char = retry;
      part = star + 1;
    } else {
      return false;
    }
  }
  while (parts[part] === "*") part += 1;
  return part === parts.length;
}
