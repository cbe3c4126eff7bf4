/**
 * What runs in the worker that tests regular expressions. The function is also sent as text, to
 * start it from a Blob where there is no file to start it from: it uses nothing from outside.
 *
 * @param {any} scope The worker's global scope.
 */
export function work(scope) {
  /** @type {string[]} */
  let names = [];
  scope.onmessage = (/** @type {MessageEvent} */ { data }) => {
    if (data.names) {
      names = JSON.parse(new TextDecoder().decode(data.names));
      scope.postMessage({ ready: true });
      return;
    }
    const pattern = new RegExp(data.source, data.flags);
    const found = new Uint32Array(names.length);
    let count = 0;
    for (let index = 0; index < names.length; index += 1) {
      if (pattern.test(names[index])) {
        found[count] = index;
        count += 1;
      }
    }
    const matches = found.slice(0, count);
    scope.postMessage({ matches }, [matches.buffer]);
  };
}
