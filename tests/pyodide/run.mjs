// Run pytest inside Pyodide, under node.
//
//   node run.mjs PYODIDE WHEELS PROJECT [pytest arguments]
//
// PYODIDE is the assembled site's folder of that name, WHEELS a folder of pure wheels (pytest and what
// it needs), PROJECT the checkout. bpk_lite comes from the site's wheel: what is tested is what ships.
// The exit status is pytest's; 70 stands for a runtime that did not come up.

import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

// Node prints the line that threw, which in minified source is the whole of it.
process.on("uncaughtException", (error) => {
  console.error(String(error?.message ?? error).slice(-6000));
  process.exit(70);
});

const [pyodideFolder, wheels, project, ...pytestArguments] = process.argv.slice(2);
const index = resolve(pyodideFolder);
const { loadPyodide } = await import(pathToFileURL(resolve(index, "pyodide.mjs")).href);

const pyodide = await loadPyodide({
  env: {
    HOME: "/home/pyodide",
    PYTHONDONTWRITEBYTECODE: "1",
    HYPOTHESIS_STORAGE_DIRECTORY: "/tmp/hypothesis",
  },
});
await pyodide.loadPackage("bpk-lite", { messageCallback() {}, errorCallback: console.error });
if (!("bpk-lite" in pyodide.loadedPackages)) throw new Error("bpk_lite's wheel could not be loaded");

const site = pyodide.runPython("import site; site.getsitepackages()[0]");
for (const name of readdirSync(wheels).filter((name) => name.endsWith(".whl"))) {
  const bytes = new Uint8Array(readFileSync(resolve(wheels, name)));
  pyodide.unpackArchive(bytes, "wheel", { extractDir: site });
}

pyodide.FS.mkdirTree("/project");
pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: resolve(project) }, "/project");
pyodide.globals.set("arguments", pyodide.toPy(pytestArguments));

// The checkout comes last on the path: it is there for the tests' own packages, not for bpk_lite.
const status = await pyodide.runPythonAsync(`
import os, sys
os.chdir("/project")
sys.path.remove("")
sys.path.append("/project")
import bpk_lite, pytest
assert not bpk_lite.__file__.startswith("/project"), bpk_lite.__file__
print("inside Pyodide: Python", sys.version.split()[0], "on", sys.platform, "with", bpk_lite.__file__)
int(pytest.main(list(arguments)))
`);
process.exit(status);
