// Runs clippy on what only workerd runs. Debian's compiler for WASM comes without clippy: there the build's own
// warnings have to do.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
if (existsSync(join(ROOT, ".toolchain/env.json"))) {
  console.log("lint: no clippy for WASM with Debian's compiler; skipped");
} else {
  const target = ["--target", "wasm32-unknown-unknown"];
  const args = ["clippy", "--locked", "-p", "switchyard", "-p", "yard-objects", "--lib", ...target, "--", "-D", "warnings"];
  console.log(`cargo ${args.join(" ")}`);
  process.exitCode = spawnSync("cargo", args, { cwd: ROOT, stdio: "inherit" }).status ?? 1;
}
