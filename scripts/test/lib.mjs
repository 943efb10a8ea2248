// Starts scripts/serve.mjs for a test and sees to it that it ends.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** A folder that is removed when the test ends. */
export function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "yard-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A running platform: `next()` waits for its next line, `ended` for its exit code, `errors()` tells what it said. */
export function serve(t, ...args) {
  const script = join(ROOT, "scripts/serve.mjs");
  const child = spawn(process.execPath, [script, "--port", "0", "--tick", "0", "--until-eof", ...args], { cwd: ROOT });
  let errors = "";
  child.stderr.on("data", (data) => (errors += data));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = once(child, "exit").then(([code]) => code);
  t.after(async () => {
    child.kill("SIGTERM");
    await ended;
  });
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`serve ended: ${errors}`);
    return JSON.parse(value);
  };
  return { child, next, ended, errors: () => errors };
}

/** True while the process runs; one that has ended and waits for its parent to notice runs no more. */
export function alive(pid) {
  try {
    const [, state] = readFileSync(`/proc/${pid}/stat`, "utf8").match(/\) (\S)/);
    return state !== "Z";
  } catch {
    return false;
  }
}
