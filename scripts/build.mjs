// Builds the Worker: cargo, wasm-bindgen, wasm-opt, one bundle of JavaScript; prints what it weighs.
//
//   node scripts/build.mjs [--fast] [--out FOLDER]
//
// --fast leaves out link-time optimisation and wasm-opt: for those who work on the Worker. Environment: YARD_FAST=1
// is --fast, YARD_BUILD=FOLDER is --out. The folder ("build" by default) gets index.js and index_bg.wasm; it is
// replaced only when all went well, and left alone when cargo made the same module as last time.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { build as esbuild } from "esbuild";
import { toolchain } from "./lib/toolchain.mjs";
import { classes } from "./lib/config.mjs";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
// Workers' limit for a script, before compression.
const LIMIT_BYTES = 64 * 1024 * 1024;
// Named one by one, so that a newer optimiser emits nothing that workerd does not know yet.
const WASM_FEATURES = [
  "bulk-memory",
  "exception-handling",
  "multivalue",
  "mutable-globals",
  "nontrapping-float-to-int",
  "reference-types",
  "sign-ext",
];

function run(command, args, env = process.env) {
  const done = spawnSync(command, args, { cwd: ROOT, env, stdio: ["ignore", "inherit", "inherit"] });
  if (done.error) throw new Error(`cannot run ${command}: ${done.error.message}; run \`make setup\``);
  if (done.status !== 0) throw new Error(`${command} ${args[0]} failed`);
}

/** Compiles the root package and returns the path of the module. */
function compile(tools, fast) {
  const profile = fast ? "fast" : "release";
  const args = ["build", "--lib", "-p", "switchyard", "--target", "wasm32-unknown-unknown", "--profile", profile];
  run(tools.cargo, args, tools.env);
  const target = resolve(ROOT, tools.env.CARGO_TARGET_DIR ?? "target");
  return join(target, "wasm32-unknown-unknown", profile, "switchyard.wasm");
}

/** What the output depends on besides the module itself. */
function fingerprint(module, bindgen, fast) {
  const hash = createHash("sha256").update(fast ? "fast" : "release");
  for (const file of [module, bindgen, "package-lock.json", "wrangler.toml", "scripts/shim.mjs", "scripts/build.mjs"]) {
    hash.update(readFileSync(resolve(ROOT, file)));
  }
  return hash.digest("hex");
}

function optimise(tools, wasm) {
  const features = WASM_FEATURES.map((name) => `--enable-${name}`);
  const optimiser = join(ROOT, "node_modules/.bin/wasm-opt");
  run(optimiser, [wasm, "-O3", "--debuginfo", ...features, "-o", `${wasm}.opt`], tools.env);
  renameSync(`${wasm}.opt`, wasm);
}

/** Joins the glue and the shim; fails when a class of wrangler.toml is not in the glue. */
async function bundle(folder, fast) {
  const glue = join(folder, "index.js");
  // workerd gives the compiled module to a plain import.
  writeFileSync(glue, readFileSync(glue, "utf8").replace("import source ", "import "));
  const shim = readFileSync(join(ROOT, "scripts/shim.mjs"), "utf8");
  const hosts = classes(ROOT).map((name) => `export const ${name} = host(rust.${name});\n`);
  writeFileSync(join(folder, "shim.js"), `${shim}\n${hosts.join("")}`);
  const result = await esbuild({
    entryPoints: [join(folder, "shim.js")],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    minifySyntax: !fast,
    minifyWhitespace: !fast,
    external: ["./index_bg.wasm", "cloudflare:workers"],
    // A class that the glue lacks is `undefined` in JavaScript: a warning to esbuild, an error to us.
    logOverride: { "import-is-undefined": "error" },
    logLevel: "warning",
  });
  for (const name of ["index.js", "shim.js", "snippets"]) rmSync(join(folder, name), { recursive: true, force: true });
  writeFileSync(glue, result.outputFiles[0].contents);
}

/** Puts the folder `fresh` in the place of `out`; of two builds at once, one is kept whole. */
function replace(out, fresh) {
  const old = `${fresh}.old`;
  if (existsSync(out)) renameSync(out, old);
  renameSync(fresh, out);
  rmSync(old, { recursive: true, force: true });
}

function weigh(folder) {
  let raw = 0;
  let compressed = 0;
  for (const name of ["index.js", "index_bg.wasm"]) {
    const bytes = readFileSync(join(folder, name));
    raw += bytes.length;
    compressed += gzipSync(bytes, { level: 9 }).length;
  }
  const kib = (bytes) => `${Math.round(bytes / 1024)} KiB`;
  console.log(`bundle: ${kib(raw)} raw, ${kib(compressed)} gzip (limit ${kib(LIMIT_BYTES)} raw)`);
  if (raw > LIMIT_BYTES) throw new Error("the bundle is over the platform's limit");
}

async function main() {
  const { values } = parseArgs({ options: { fast: { type: "boolean" }, out: { type: "string" } } });
  const fast = values.fast ?? process.env.YARD_FAST === "1";
  const out = resolve(ROOT, values.out ?? process.env.YARD_BUILD ?? "build");
  const tools = toolchain(ROOT);
  const module = compile(tools, fast);
  run(tools.bindgen, ["--check", "Cargo.lock"]);
  const stamp = join(out, ".stamp");
  const wanted = fingerprint(module, tools.bindgen, fast);
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) {
    console.log("build: nothing changed");
    return weigh(out);
  }
  const fresh = `${out}.${process.pid}`;
  mkdirSync(fresh, { recursive: true });
  try {
    run(tools.bindgen, [module, fresh]);
    if (!fast) optimise(tools, join(fresh, "index_bg.wasm"));
    await bundle(fresh, fast);
    writeFileSync(join(fresh, ".stamp"), wanted);
    replace(out, fresh);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  weigh(out);
}

main().catch((error) => {
  console.error(`build: ${error.message}`);
  process.exit(1);
});
