/** Keep the page for visits without a network: registers the service worker of this version. */

/**
 * Ask for all files to be kept. Called once the page is ready, to stay out of its way.
 *
 * @param {(text: string) => void} say Told what a visitor wants to know.
 */
export async function keepForOffline(say) {
  if (!("serviceWorker" in navigator)) return; // not a secure context, or private browsing
  const root = new URL("../", import.meta.url);
  try {
    const list = await (await fetch(new URL("files.json", root))).json();
    const earlier = navigator.serviceWorker.controller;
    // The version in the address makes a new version a new worker; see sw.js.
    const script = new URL(`sw.js?version=${list.version}`, root);
    const registration = await navigator.serviceWorker.register(script);
    await activated(registration);
    const isNew = earlier !== null && earlier.scriptURL !== script.href;
    say(isNew ? "A newer version is ready: reload to use it" : "Works offline");
  } catch (error) {
    console.info("not kept for offline use:", error); // it still works with a network
  }
}

/**
 * @param {ServiceWorkerRegistration} registration
 * @returns {Promise<void>} Fulfilled when the newest worker is active, rejected if it gave up.
 */
function activated(registration) {
  const worker = registration.installing ?? registration.waiting ?? registration.active;
  return new Promise((resolve, reject) => {
    const look = () => {
      if (worker?.state === "activated") resolve();
      if (worker?.state === "redundant") reject(new Error("the service worker could not keep all files"));
    };
    worker?.addEventListener("statechange", look);
    look();
  });
}
