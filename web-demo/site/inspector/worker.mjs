/**
 * Python, away from the page's own thread: opens what was chosen and answers the drawing modules.
 *
 * Messages to the page: `progress` and `ready` while Python starts, then for each command, by its
 * number, `done` or `failed`; `piece` with the next bytes of a conversion; `drawing` with what the
 * session says to the drawing modules, which the page hands on as it is.
 */

import { boot, FileTrouble } from "../app/runtime.mjs";
import { counted, FileSource, SourceTrouble, UrlSource } from "./source.mjs";

/** @import { Chosen, Command } from "./messages.mjs" */

/** @type {any} */
let page;

/** @param {object} message @param {Transferable[]} [transfer] */
function post(message, transfer = []) {
  self.postMessage(message, { transfer });
}

/** @param {string} text @param {ArrayBuffer[]} buffers */
function postDrawing(text, buffers) {
  post({ type: "drawing", text, buffers }, buffers);
}

async function start() {
  const root = new URL("../", import.meta.url);
  const python = await boot(root, ["bpk-lite"], (progress) => post({ type: "progress", progress }));
  const module = python.pyimport("bpk_lite_widgets._page");
  page = module.Page(postDrawing);
  module.destroy();
  post({ type: "ready" });
}

const started = start().catch((error) => {
  const [kind, file] = error instanceof FileTrouble ? [error.kind, error.file] : ["start", undefined];
  post({ type: "trouble", trouble: { kind, file, details: String(error?.message ?? error) } });
  throw error;
});
started.catch(() => {}); // it has been told

/** @param {Chosen} chosen */
function sourceOf({ file, url }) {
  return file ? new FileSource(file) : UrlSource.open(/** @type {string} */ (url));
}

/** @param {Command} command */
async function run(command) {
  await started;
  switch (command.kind) {
    case "open": {
      const source = await sourceOf(command.source);
      const other = command.other ? await sourceOf(command.other) : undefined;
      // In a promise of its own, so that large reads may suspend Python, where a browser can.
      await ("Suspending" in WebAssembly ? page.open.callPromising(source, other) : page.open(source, other));
      return { name: source.name };
    }
    case "convert": {
      const give = (/** @type {ArrayBuffer | [number, number]} */ piece) =>
        post({ type: "piece", id: command.id, piece }, piece instanceof ArrayBuffer ? [piece] : []);
      return { notes: JSON.parse(await page.convert(command.to, give)) };
    }
    case "counted":
      return { ...counted };
  }
}

self.onmessage = async (/** @type {MessageEvent} */ { data }) => {
  if (data.type === "drawing") {
    page?.receive(JSON.stringify(data.message));
    return;
  }
  try {
    post({ type: "done", id: data.id, result: await run(data) });
  } catch (error) {
    post({ type: "failed", id: data.id, trouble: describe(error) });
  }
};

/** @param {any} error */
function describe(error) {
  if (error instanceof SourceTrouble) return { kind: error.kind, message: error.message };
  if (error?.name === "NotReadableError" || error?.name === "NotFoundError") {
    return { kind: "changed", message: "The file cannot be read any more; choose it again." };
  }
  const text = String(error?.message ?? error).trim();
  const kind = String(error?.type ?? "Error"); // the class of Python's error, whose text is a traceback
  const place = text.lastIndexOf(`${kind}: `);
  return { kind, message: place < 0 ? text : text.slice(place + kind.length + 2) };
}
