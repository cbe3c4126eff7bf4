/**
 * Start Pyodide with the packages a page needs, in a worker.
 *
 * Wanted: as fast as can be, progress for each file, no half-started Python.
 * - All files are asked for at once. Pyodide on its own asks for a wheel only once it knows its lock.
 * - WebAssembly is compiled while it arrives.
 * - Each file is checked: against the sha256 in `files.json`, the WebAssembly by its size (to hash
 *   it would mean to wait for all of it). Pyodide's own check of a wheel only logs an error and goes
 *   on without the package.
 */

/** @import { Progress } from "./messages.mjs" */

/** @typedef {{ name: string, size: number, sha256: string }} ListedFile */
/** @typedef {{ packages: Record<string, { depends: string[], file_name: string }> }} Lock */

const MODULES = ["pyodide.mjs", "pyodide.asm.mjs"];
const WASM = "pyodide.asm.wasm";
const STDLIB = "python_stdlib.zip";

/** A file that did not arrive, or not as it was published. */
export class FileTrouble extends Error {
  /**
   * @param {"download" | "damaged"} kind
   * @param {string} file
   * @param {string} reason
   */
  constructor(kind, file, reason) {
    super(`${file}: ${reason}`);
    this.kind = kind;
    this.file = file;
  }
}

/**
 * Start Pyodide and install `wanted` and all it depends on.
 *
 * @param {URL} root The folder that has `files.json` and `pyodide/`.
 * @param {string[]} wanted Names of packages, as in the lock.
 * @param {(progress: Progress) => void} onProgress
 * @returns {Promise<any>} Pyodide, with every package installed.
 * @throws {FileTrouble} When a file is missing or damaged.
 */
export async function boot(root, wanted, onProgress) {
  const index = new URL("pyodide/", root);
  const [list, lock] = await Promise.all([
    /** @type {Promise<{ files: ListedFile[] }>} */ (getJson(new URL("files.json", root))),
    /** @type {Promise<Lock>} */ (getJson(new URL("pyodide-lock.json", index))),
  ]);
  const packages = withDependencies(lock, wanted);
  const wheels = packages.map((name) => lock.packages[name].file_name);
  const listed = new Map(list.files.map((file) => [file.name, file]));
  const files = [WASM, STDLIB, ...MODULES, ...wheels].map((name) => {
    const file = listed.get(`pyodide/${name}`);
    if (!file) throw new FileTrouble("download", name, "is not in the list of the site's files");
    return { ...file, name };
  });
  for (const { name, size } of files) onProgress({ name, loaded: 0, total: size });

  /** @type {Map<string, Promise<Response>>} */
  const underway = new Map();
  /** @type {Promise<unknown>[]} */
  const arrivals = [];
  for (const file of files.filter(({ name }) => !MODULES.includes(name))) {
    const url = new URL(file.name, index).href;
    const { response, arrived } = (file.name === WASM ? stream : whole)(file, url, onProgress);
    underway.set(url, response);
    arrivals.push(response, arrived);
  }
  const restore = answerFetches(underway);
  try {
    const modules = MODULES.map(async (name) => {
      const module = await importModule(name, new URL(name, index));
      const size = listed.get(`pyodide/${name}`)?.size ?? 0;
      onProgress({ name, loaded: size, total: size });
      return module;
    });
    const [{ loadPyodide }] = await Promise.all(modules);
    const started = loadPyodide({
      indexURL: index.href,
      lockFileContents: lock,
      packageBaseUrl: index.href,
      packages,
      stdout: console.info,
      stderr: console.warn,
    });
    // A file that fails ends the wait: without it Pyodide may never finish starting.
    const [pyodide] = await Promise.all([started, ...arrivals]);
    for (const name of packages) {
      if (!(name in pyodide.loadedPackages)) {
        throw new FileTrouble("damaged", lock.packages[name].file_name, "was not accepted by Pyodide");
      }
    }
    return pyodide;
  } finally {
    restore();
  }
}

/**
 * @param {Lock} lock
 * @param {string[]} wanted
 * @returns {string[]} `wanted` and everything needed by them, each once.
 */
function withDependencies(lock, wanted) {
  const found = new Set(wanted);
  for (const name of found) {
    for (const needed of lock.packages[name].depends) found.add(needed);
  }
  return [...found];
}

/**
 * Let `fetch` hand out what is already on its way, and pass on every other request.
 *
 * @param {Map<string, Promise<Response>>} underway
 * @returns {() => void} Puts the browser's own `fetch` back.
 */
function answerFetches(underway) {
  const original = self.fetch;
  self.fetch = (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input, self.location.href).href;
    return underway.get(url) ?? original(input, init);
  };
  return () => {
    self.fetch = original;
  };
}

/** @typedef {{ response: Promise<Response>, arrived: Promise<unknown> }} Underway */

/**
 * Fetch a file whole and check its sha256 before anyone gets it.
 *
 * @param {ListedFile} file
 * @param {string} url
 * @param {(progress: Progress) => void} onProgress
 * @returns {Underway}
 */
function whole(file, url, onProgress) {
  const verified = async () => {
    // Hashing needs a secure context; in any other the browser can still check while it fetches.
    const secure = self.isSecureContext;
    const init = secure ? {} : { integrity: integrity(file.sha256) };
    const original = await request(file.name, url, init);
    const { body, complete } = counted(original, file, onProgress);
    const [bytes] = await Promise.all([new Response(body).arrayBuffer(), complete]);
    if (secure && hex(await crypto.subtle.digest("SHA-256", bytes)) !== file.sha256) {
      throw new FileTrouble("damaged", file.name, "its content is not what was published");
    }
    return new Response(bytes);
  };
  const response = verified();
  return { response, arrived: response };
}

/**
 * Fetch WebAssembly so that it can be compiled while it arrives.
 *
 * @param {ListedFile} file
 * @param {string} url
 * @param {(progress: Progress) => void} onProgress
 * @returns {Underway}
 */
function stream(file, url, onProgress) {
  const counting = request(file.name, url, {}).then((original) => counted(original, file, onProgress));
  const headers = { "Content-Type": "application/wasm" };
  return {
    response: counting.then(({ body }) => new Response(body, { headers })),
    arrived: counting.then(({ complete }) => complete),
  };
}

/**
 * The body of a response, its bytes counted as they pass.
 *
 * @param {Response} response
 * @param {ListedFile} file
 * @param {(progress: Progress) => void} onProgress
 * @returns {{ body: ReadableStream<Uint8Array<ArrayBuffer>>, complete: Promise<void> }} `complete` is
 *   rejected when the connection breaks or the size is not the listed one.
 */
function counted(response, file, onProgress) {
  const reader = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body).getReader();
  /** @type {(reason?: FileTrouble) => void} */
  let finish = () => {};
  /** @type {Promise<void>} */
  const complete = new Promise((resolve, reject) => {
    finish = (reason) => (reason ? reject(reason) : resolve());
  });
  let loaded = 0;
  const body = new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) {
          loaded += value.byteLength;
          onProgress({ name: file.name, loaded: Math.min(loaded, file.size), total: file.size });
          controller.enqueue(value);
        } else if (loaded === file.size) {
          controller.close();
          finish();
        } else {
          throw new FileTrouble("damaged", file.name, `has ${loaded} bytes, not ${file.size}`);
        }
      } catch (error) {
        const known = error instanceof FileTrouble;
        const reason = known ? error : new FileTrouble("download", file.name, String(error));
        controller.error(reason);
        finish(reason);
      }
    },
  });
  return { body, complete };
}

/**
 * @param {string} name
 * @param {string} url
 * @param {RequestInit} init
 */
async function request(name, url, init) {
  let response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    throw new FileTrouble("download", name, String(error));
  }
  if (!response.ok) throw new FileTrouble("download", name, `the server answered ${response.status}`);
  return response;
}

/**
 * @param {string} name
 * @param {URL} url
 */
async function importModule(name, url) {
  try {
    return await import(url.href);
  } catch (error) {
    throw new FileTrouble("download", name, String(error));
  }
}

/** @param {URL} url */
async function getJson(url) {
  const name = /** @type {string} */ (url.pathname.split("/").pop());
  const response = await request(name, url.href, {});
  return response.json().catch((error) => {
    throw new FileTrouble("damaged", name, String(error));
  });
}

/** @param {ArrayBuffer} digest */
function hex(digest) {
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {string} sha256 */
function integrity(sha256) {
  const bytes = (sha256.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16));
  return `sha256-${btoa(String.fromCharCode(...bytes))}`;
}
