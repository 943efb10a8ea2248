// Where the tools are that `make setup` found or made.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Cargo, its environment and the glue generator, as the set-up of the repository at `root` left them. */
export function toolchain(root) {
  const folder = join(root, ".toolchain");
  const bindgen = join(folder, "bindgen/debug/bindgen");
  if (!existsSync(bindgen)) throw new Error("not set up yet: run `make setup`");
  const extra = join(folder, "env.json");
  const env = existsSync(extra) ? JSON.parse(readFileSync(extra, "utf8")) : {};
  return { cargo: env.CARGO ?? "cargo", bindgen, env: { ...process.env, ...env } };
}
