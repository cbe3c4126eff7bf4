/** The progress of loading: one bar for all, one line per file, and a summary that stays. */

/** @import { Progress, Versions } from "./messages.mjs" */

export class LoadingView {
  #total;
  #list;
  #summary;
  /** @type {Map<string, { progress: Progress, bar: HTMLProgressElement, size: HTMLElement }>} */
  #files = new Map();

  /** @param {{ total: HTMLProgressElement, list: HTMLElement, summary: HTMLElement }} elements */
  constructor({ total, list, summary }) {
    this.#total = total;
    this.#list = list;
    this.#summary = summary;
  }

  /** @param {Progress} progress */
  update(progress) {
    const file = this.#files.get(progress.name) ?? this.#add(progress);
    file.progress = progress;
    file.bar.value = progress.loaded;
    const [loaded, total] = this.#sums();
    this.#total.value = loaded / total;
    this.#summary.textContent = `Loading ${megabytes(loaded)} of ${megabytes(total)}`;
  }

  /**
   * @param {number} milliseconds From asking for the page to being ready to read a digit.
   * @param {Versions} versions
   */
  finish(milliseconds, versions) {
    const [, total] = this.#sums();
    const seconds = (milliseconds / 1000).toFixed(1);
    this.#total.hidden = true;
    this.#summary.textContent =
      `${megabytes(total)} ready in ${seconds} s · Python ${versions.python} · ` +
      `NumPy ${versions.numpy} · bpk_lite ${versions.bpkLite}`;
  }

  stop() {
    this.#total.hidden = true;
    this.#summary.textContent = "Loading stopped";
  }

  #sums() {
    let [loaded, total] = [0, 0];
    for (const { progress } of this.#files.values()) {
      loaded += progress.loaded;
      total += progress.total;
    }
    return [loaded, total];
  }

  /** @param {Progress} progress */
  #add(progress) {
    const row = document.createElement("tr");
    const name = row.insertCell();
    name.textContent = shortName(progress.name);
    name.title = progress.name;
    const bar = document.createElement("progress");
    bar.max = progress.total;
    bar.setAttribute("aria-label", `Loading ${progress.name}`);
    row.insertCell().append(bar);
    const size = row.insertCell();
    size.textContent = megabytes(progress.total);
    this.#list.append(row);
    const file = { progress, bar, size };
    this.#files.set(progress.name, file);
    return file;
  }
}

/**
 * Leave the tags of a wheel away: "numpy-2.4.3-cp314-….whl" is "numpy 2.4.3".
 *
 * @param {string} name
 */
function shortName(name) {
  const wheel = /^([^-]+)-([^-]+)-.*\.whl$/.exec(name);
  return wheel ? `${wheel[1]} ${wheel[2]}` : name;
}

/** @param {number} bytes */
function megabytes(bytes) {
  return bytes < 1e5 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
