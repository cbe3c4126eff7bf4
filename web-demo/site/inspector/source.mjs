/**
 * Bytes of a local file or an address, by ranges, in a worker.
 *
 * Two ways to read. `read` is synchronous, for headers and small things. `fill` streams a large range
 * through one buffer of 1 MiB that is used again and again: synchronous reads of gigabytes would
 * leave a gigabyte of garbage. `read` and `fill` may be under way at once, `fill` one at a time.
 *
 * @typedef {{
 *   size: number, name: string, sliceable: boolean,
 *   read: (start: number, end: number) => Uint8Array,
 *   fill: (target: any, start: number, end: number) => Promise<void>,
 * }} Source
 */

const BLOCK = 1 << 20;
const HEAD = 1 << 16;
const PATIENCE = 20_000; // milliseconds without a byte until a stream is given up

/** Why something cannot be read, in words for whoever chose it. */
export class SourceTrouble extends Error {
  /**
   * @param {"ranges" | "network" | "status" | "size"} kind
   * @param {string} message
   */
  constructor(kind, message) {
    super(message);
    this.name = "SourceTrouble";
    this.kind = kind;
  }
}

/** Bytes that were asked for since the start; the tests look at them. */
export const counted = { bytes: 0, reads: 0 };

/** @param {number} start @param {number} end */
function count(start, end) {
  counted.bytes += end - start;
  counted.reads += 1;
}

let scratch = new ArrayBuffer(BLOCK);
/** @type {Promise<void>} */
let turn = Promise.resolve();

/**
 * Stream a body into a Python buffer. The view of it is taken anew for each piece: when
 * WebAssembly's memory grows, older views are of nothing.
 *
 * @param {() => Promise<ReadableStream<Uint8Array>>} open
 * @param {any} target A writeable Python buffer.
 * @param {number} length
 */
function pour(open, target, length) {
  const poured = turn.then(async () => {
    const reader = (await open()).getReader({ mode: "byob" });
    let filled = 0;
    let last = performance.now();
    // Whoever waits for their turn would wait for ever behind a stream that stalls.
    const watch = setInterval(() => {
      if (performance.now() - last > PATIENCE) void reader.cancel();
    }, PATIENCE / 4);
    try {
      for (;;) {
        const { done, value } = await reader.read(new Uint8Array(scratch));
        if (value) scratch = /** @type {ArrayBuffer} */ (value.buffer);
        if (done || !value) break;
        if (filled + value.length > length) throw new Error("more bytes came than were asked for");
        const view = target.getBuffer("u8");
        try {
          view.data.set(value, filled);
        } finally {
          view.release();
        }
        filled += value.length;
        last = performance.now();
      }
    } finally {
      clearInterval(watch);
    }
    if (filled !== length) throw new Error(`${filled} bytes came, ${length} were asked for`);
  });
  turn = poured.catch(() => {
    scratch = new ArrayBuffer(BLOCK); // the broken stream may have kept the other one
  });
  return poured;
}

/** @implements {Source} */
export class FileSource {
  sliceable = true;
  #file;
  #reader = new FileReaderSync();

  /** @param {File} file */
  constructor(file) {
    this.#file = file;
    this.size = file.size;
    this.name = file.name;
  }

  /** @param {number} start @param {number} end */
  read(start, end) {
    count(start, end);
    return new Uint8Array(this.#reader.readAsArrayBuffer(this.#file.slice(start, end)));
  }

  /** @param {any} target @param {number} start @param {number} end */
  fill(target, start, end) {
    count(start, end);
    const kept = target.copy?.() ?? target; // the argument is gone when the caller returns
    const open = async () => this.#file.slice(start, end).stream();
    return pour(open, kept, end - start).finally(() => kept.destroy?.());
  }
}

/** @implements {Source} */
export class UrlSource {
  sliceable = false;
  #url;
  #head;

  /**
   * Ask for the first bytes, which tells whether the server answers ranges. A server that does not
   * would send everything, and a synchronous request for that cannot be stopped.
   *
   * @param {string} address
   * @throws {SourceTrouble}
   */
  static async open(address) {
    const stop = new AbortController();
    let response;
    try {
      const headers = { Range: `bytes=0-${HEAD - 1}` };
      response = await fetch(address, { headers, signal: stop.signal, credentials: "omit" });
    } catch (error) {
      throw new SourceTrouble(
        "network",
        `${address} could not be reached, or its server does not let other pages read it (CORS): ${error}`,
      );
    }
    if (!response.ok) {
      stop.abort();
      throw new SourceTrouble("status", `the server answered ${response.status} for ${address}`);
    }
    if (response.status !== 206) {
      stop.abort();
      throw new SourceTrouble(
        "ranges",
        `the server of ${address} sends whole files only, no parts of them. Download it and choose the file here.`,
      );
    }
    const head = new Uint8Array(await response.arrayBuffer());
    count(0, head.length);
    const size = await sizeOf(response);
    // Where redirects led: later requests go there at once.
    return new UrlSource(response.url, nameOf(address), head, size);
  }

  /**
   * @param {string} url
   * @param {string} name
   * @param {Uint8Array} head
   * @param {number} size
   */
  constructor(url, name, head, size) {
    this.#url = url;
    this.#head = head;
    this.size = size;
    this.name = name;
  }

  /** @param {number} start @param {number} end */
  read(start, end) {
    if (end <= this.#head.length) return this.#head.slice(start, end);
    const request = new XMLHttpRequest();
    request.open("GET", this.#url, false);
    request.responseType = "arraybuffer";
    request.setRequestHeader("Range", `bytes=${start}-${end - 1}`);
    request.send();
    if (request.status !== 206 || request.response.byteLength !== end - start) {
      throw new Error(`the server answered ${request.status} for bytes ${start} to ${end}`);
    }
    count(start, end);
    return new Uint8Array(request.response);
  }

  /** @param {any} target @param {number} start @param {number} end */
  fill(target, start, end) {
    const kept = target.copy?.() ?? target;
    const open = async () => {
      const stop = new AbortController();
      const headers = { Range: `bytes=${start}-${end - 1}` };
      const response = await fetch(this.#url, { headers, signal: stop.signal, credentials: "omit" });
      if (response.status !== 206 || !response.body) {
        stop.abort();
        throw new Error(`the server answered ${response.status} for bytes ${start} to ${end}`);
      }
      count(start, end);
      return response.body;
    };
    return pour(open, kept, end - start).finally(() => kept.destroy?.());
  }
}

/**
 * The size of the whole: from Content-Range, which another origin may hide, or else by a HEAD.
 *
 * @param {Response} response
 */
async function sizeOf(response) {
  const total = Number(/\/(\d+)$/.exec(response.headers.get("content-range") ?? "")?.[1]);
  if (Number.isSafeInteger(total)) return total;
  const head = await fetch(response.url, { method: "HEAD", credentials: "omit" });
  const length = head.headers.get("content-length");
  if (!head.ok || length === null) {
    throw new SourceTrouble("size", `the server of ${response.url} does not tell how large the file is`);
  }
  return Number(length);
}

/** @param {string} address */
function nameOf(address) {
  const { pathname, hostname } = new URL(address);
  const last = pathname.split("/").filter(Boolean).at(-1);
  if (!last) return hostname;
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}
