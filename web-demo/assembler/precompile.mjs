// Compile the .py files of zip archives to .pyc, inside Pyodide itself: a page that gets them starts
// twice as fast, and only the Python that will load them writes them right.
//
//   node precompile.mjs JOBS.json
//
// JOBS.json: {"core": "folder with Pyodide's core files",
//             "archives": [{"from": "a.whl", "to": "b.whl", "leave_out": ["*.pyi"]}]}
//
// The result depends on nothing but the archive and the version of Pyodide: times are fixed, the
// .pyc are hash-based and unchecked (PEP 552), the order is the archive's.

import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

// Node prints the line that threw, which in minified source is the whole of it.
process.on("uncaughtException", (error) => {
  console.error(String(error?.message ?? error).slice(0, 3000));
  process.exit(1);
});

const COMPILE = `
import importlib._bootstrap_external as bootstrap
import importlib.util
import io
import zipfile
from fnmatch import fnmatchcase

def compile_archive(content, leave_out):
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(result, "w") as target:
        for member in source.infolist():
            name = member.filename
            if member.is_dir() or any(fnmatchcase(name, pattern) for pattern in leave_out):
                continue
            body = source.read(member)
            # Pyodide reads its build variables from the source of _sysconfigdata.
            if name.endswith(".py") and not name.startswith("_sysconfigdata"):
                try:
                    code = compile(body, name, "exec", dont_inherit=True)
                except SyntaxError:
                    pass  # a template or a test of broken syntax: it stays as it is
                else:
                    checksum = importlib.util.source_hash(body)
                    body = bytes(bootstrap._code_to_hash_pyc(code, checksum, False))
                    name += "c"
            entry = zipfile.ZipInfo(name, (2020, 2, 2, 0, 0, 0))
            entry.external_attr = member.external_attr
            target.writestr(entry, body, zipfile.ZIP_DEFLATED, 9)
    return result.getvalue()

lambda content, leave_out: compile_archive(content.to_bytes(), leave_out.to_py())
`;

const jobs = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { loadPyodide } = await import(pathToFileURL(resolve(jobs.core, "pyodide.mjs")).href);
const pyodide = await loadPyodide();
const compileArchive = pyodide.runPython(COMPILE);
for (const { from, to, leave_out } of jobs.archives) {
  const compiled = compileArchive(new Uint8Array(readFileSync(from)), leave_out);
  writeFileSync(to, compiled.toJs());
  compiled.destroy();
}
compileArchive.destroy();
