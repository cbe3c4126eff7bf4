/** Save what is open in another format: a Blob of new bytes and of slices of the file itself. */

/** @import { Connection } from "./connection.mjs" */
/** @import { Target } from "./messages.mjs" */

const EXTENSIONS = { burnpack: "bpk", safetensors: "safetensors" };

/**
 * @param {Connection} connection
 * @param {File | undefined} file What is open, if it is a local file.
 * @param {string} name
 * @param {Target} to
 * @returns {Promise<{ name: string, blob: Blob, notes: string[] }>}
 */
export async function convert(connection, file, name, to) {
  /** @type {Blob[]} */
  const parts = [];
  const { notes } = await connection.convert(to, (piece) => {
    // Each new piece becomes a Blob at once: then the browser keeps it, and not this page's memory.
    if (piece instanceof ArrayBuffer) parts.push(new Blob([piece]));
    else if (file) parts.push(file.slice(piece[0], piece[1]));
  });
  const stem = name.replace(/\.(bpk|safetensors|pt|pth|bin|npz)$/i, "");
  return { name: `${stem}.${EXTENSIONS[to]}`, blob: new Blob(parts), notes };
}

/** @param {string} name @param {Blob} blob */
export function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
