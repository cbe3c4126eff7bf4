/** The inspector page: choose, drop or name a file; look into it; compare; save in another format. */

import { keepForOffline } from "../app/offline.mjs";
import { CommandTrouble, Connection } from "./connection.mjs";
import { mount } from "./drawing/mount.mjs";
import { convert, download } from "./save.mjs";

/** @import { Chosen, Target } from "./messages.mjs" */

/**
 * @template {typeof HTMLElement} T
 * @param {string} id
 * @param {T} type
 * @returns {InstanceType<T>}
 */
function element(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${type.name} #${id}`);
  return /** @type {InstanceType<T>} */ (found);
}

const page = document.documentElement;
const choose = element("choose", HTMLElement);
const actions = element("actions", HTMLElement);
const status = element("status", HTMLElement);
const bar = element("loaded", HTMLProgressElement);
const trouble = element("trouble", HTMLElement);
const place = element("inspector", HTMLElement);
const address = element("address", HTMLInputElement);

/** @type {Map<string, { loaded: number, total: number }>} */
const arrived = new Map();
/** @type {{ source: Chosen, other?: Chosen, name: string } | null} */
let opened = null;
/** @type {import("./drawing/mount.mjs").Inspector | null} */
let inspector = null;
let turn = 0;

/** Exported for the tests, which count what is read. */
export const connection = new Connection({
  progress({ name, loaded, total }) {
    arrived.set(name, { loaded, total });
    const sums = [...arrived.values()].reduce(([some, all], file) => [some + file.loaded, all + file.total], [0, 0]);
    bar.max = Math.max(1, sums[1]);
    bar.value = sums[0];
  },
  ready() {
    page.dataset.state = page.dataset.state === "loading" ? "ready" : page.dataset.state;
    bar.hidden = true;
    if (!opened) status.textContent = "";
    void keepForOffline((text) => {
      element("offline", HTMLElement).textContent = text;
    });
  },
  trouble({ kind, file, details }) {
    page.dataset.state = "failed";
    bar.hidden = true;
    const text = kind === "download" || kind === "damaged" ? `${file} did not arrive as it should.` : "Python did not start in this browser.";
    explain(text, `${details}. Reload the page to try again.`);
  },
});

/** @param {string} title @param {string} text */
function explain(title, text) {
  const [heading, paragraph] = ["h2", "p"].map((name) => /** @type {HTMLElement} */ (trouble.querySelector(name)));
  heading.textContent = title;
  paragraph.textContent = text;
  trouble.hidden = false;
  status.textContent = "";
}

/** @type {Record<string, string>} */
const TITLES = {
  ranges: "This server sends no parts of files",
  network: "The address could not be reached",
  status: "The address could not be opened",
  size: "The size of the file is not known",
  changed: "The file has changed",
  ReadError: "The file can no longer be read",
  LimitError: "This is more than the page can do",
  MemoryError: "This is more than the memory holds",
  InvalidMagicNumber: "There are no weights in this file",
};

/** @param {unknown} error @param {string} title */
function explainError(error, title) {
  const kind = error instanceof CommandTrouble ? error.kind : "";
  explain(TITLES[kind] ?? title, error instanceof Error ? error.message : String(error));
}

/**
 * Open something and show it. What was open before stays if that fails.
 *
 * @param {Chosen} source
 * @param {Chosen} [other] What to compare it with.
 */
async function open(source, other) {
  turn += 1;
  const mine = turn;
  trouble.hidden = true;
  status.textContent = page.dataset.state === "loading" ? "Getting Python ready…" : "Reading…";
  performance.mark("chosen");
  try {
    const { name } = await connection.open(source, other);
    if (mine !== turn) return;
    opened = { source, other, name };
    inspector?.destroy();
    place.hidden = false;
    choose.hidden = true;
    actions.hidden = false;
    inspector = await mount(place, connection.transport, {
      // From a file: the page's policy allows no worker from a Blob.
      makeRegexWorker: () =>
        new Worker(new URL("./drawing/regex-worker.mjs", import.meta.url), { type: "module" }),
    });
    if (mine !== turn) return;
    performance.mark("shown");
    status.textContent = "";
    page.dataset.state = "shown";
    place.dataset.shown = String(mine); // which of the visitor's choices this is
    document.title = `${name} · Inspector · bpk_lite`;
  } catch (error) {
    if (mine === turn) explainError(error, "This file cannot be shown");
  }
}

/** @param {string} text An address, perhaps relative to the page's. */
function openAddress(text) {
  if (URL.canParse(text, location.href)) void open({ url: new URL(text, location.href).href });
  else explain("This is no address", text);
}

/** @param {Target} to */
async function save(to) {
  if (!opened) return;
  trouble.hidden = true;
  status.textContent = "Converting…";
  try {
    const { name, blob, notes } = await convert(connection, opened.source.file, opened.name, to);
    download(name, blob);
    status.textContent = [`Saved as ${name}.`, ...notes].join(" ");
  } catch (error) {
    explainError(error, "It could not be converted");
  }
}

for (const [id, compare] of /** @type {[string, boolean][]} */ ([["file", false], ["another", false], ["other", true]])) {
  const input = element(id, HTMLInputElement);
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    input.value = ""; // or choosing the same file again would not be heard
    if (!file) return;
    if (compare && opened) void open(opened.source, { file });
    else void open({ file });
  });
}
element("open-address", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  openAddress(address.value);
});
element("save-burnpack", HTMLButtonElement).addEventListener("click", () => void save("burnpack"));
element("save-safetensors", HTMLButtonElement).addEventListener("click", () => void save("safetensors"));

// On the window: a file that misses the page's middle would otherwise replace the page.
let inside = 0;
const over = (/** @type {boolean} */ is) => {
  page.dataset.over = String(is);
};
window.addEventListener("dragenter", (event) => {
  event.preventDefault();
  inside += 1;
  over(true);
});
window.addEventListener("dragleave", () => {
  inside -= 1;
  if (inside <= 0) over(false);
});
window.addEventListener("dragover", (event) => event.preventDefault());
window.addEventListener("drop", (event) => {
  event.preventDefault();
  inside = 0;
  over(false);
  const file = event.dataTransfer?.files[0];
  if (file) void open({ file });
});

const wanted = new URLSearchParams(location.search).get("url");
if (wanted) {
  address.value = wanted;
  openAddress(wanted);
} else {
  status.textContent = "Getting Python ready…";
}
