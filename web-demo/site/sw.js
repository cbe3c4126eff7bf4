/**
 * Keeps one version of the site, whole, for visits without a network.
 *
 * The version is in this script's address (`sw.js?version=…`, the `version` of files.json), so a new
 * version of the site is a new service worker with a cache of its own. It becomes active only once it
 * has every file as published, by sha256; then the older caches go. Everything is answered from the
 * cache, so that a page never mixes two versions; only files.json is asked for first, which is how a
 * page finds out that there is a newer version.
 */
// @ts-check
/// <reference lib="webworker" />

const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));
const PREFIX = "bpk-lite-";
const VERSION = new URL(worker.location.href).searchParams.get("version");
const CACHE = PREFIX + VERSION;
const LIST = new URL("files.json", worker.location.href).href;

/** Fill the cache, or fail: then the browser drops this worker and a later visit tries again. */
async function fill() {
  const response = await fetch(LIST, { cache: "no-store" });
  /** @type {{ version: string, files: { name: string, sha256: string }[] }} */
  const list = await response.clone().json();
  if (list.version !== VERSION) throw new Error("the site has changed since the page was loaded");
  const cache = await caches.open(CACHE);
  for (const { name, sha256 } of list.files) {
    const file = await fetch(new URL(name, LIST), { cache: "no-cache" });
    const content = await file.clone().arrayBuffer();
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
    const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
    if (!file.ok || found !== sha256) throw new Error(`${name} is not as published`);
    await cache.put(new URL(name, LIST), file);
  }
  await cache.put(LIST, response);
  await worker.skipWaiting(); // the page that is open has all its files already
}

/** Drop the versions before this one and serve the pages that are open. */
async function takeOver() {
  for (const name of await caches.keys()) {
    if (name.startsWith(PREFIX) && name !== CACHE) await caches.delete(name);
  }
  await worker.clients.claim();
}

/** @param {Request} request */
async function answer(request) {
  const cache = await caches.open(CACHE);
  const url = new URL(request.url);
  if (url.href === LIST) return fetch(request).catch(async () => (await cache.match(LIST)) ?? Response.error());
  if (url.pathname.endsWith("/")) url.pathname += "index.html";
  return (await cache.match(url, { ignoreSearch: true })) ?? fetch(request);
}

worker.addEventListener("install", (event) => event.waitUntil(fill()));
worker.addEventListener("activate", (event) => event.waitUntil(takeOver()));
worker.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(worker.registration.scope)) {
    event.respondWith(answer(event.request));
  }
});
