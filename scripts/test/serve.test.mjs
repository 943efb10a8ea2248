// The platform on one machine: starts, dies, comes back.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { alive, folder, serve } from "./lib.mjs";

const health = async (url) => (await fetch(`${url}/healthz`)).json();

test("a platform answers at the address that it prints and leaves no process behind", { timeout: 30_000 }, async (t) => {
  const platform = serve(t, "--state", folder(t));
  const { url, workerd_pid } = await platform.next();
  assert.equal((await health(url)).ok, true);
  platform.child.kill("SIGTERM");
  assert.equal(await platform.ended, 0);
  assert.equal(alive(workerd_pid), false);
});

test("a platform ends when its workerd is killed", { timeout: 30_000 }, async (t) => {
  const platform = serve(t, "--state", folder(t));
  const { workerd_pid } = await platform.next();
  process.kill(workerd_pid, "SIGKILL");
  assert.equal(await platform.ended, 3);
});

test("with --respawn a killed workerd comes back at the same address", { timeout: 30_000 }, async (t) => {
  const platform = serve(t, "--state", folder(t), "--respawn");
  const first = await platform.next();
  process.kill(first.workerd_pid, "SIGKILL");
  const second = await platform.next();
  assert.equal(second.url, first.url);
  assert.equal(second.starts, 2);
  assert.notEqual(second.workerd_pid, first.workerd_pid);
  assert.equal((await health(second.url)).ok, true);
});

test("two platforms never share a state folder", { timeout: 30_000 }, async (t) => {
  const state = folder(t);
  await serve(t, "--state", state).next();
  const second = serve(t, "--state", state);
  assert.equal(await second.ended, 1);
  assert.match(second.errors(), /is in use by process \d+; stop it, or give another --state/);
});

test("a workerd that a killed platform left behind is ended before its state is used again", { timeout: 30_000 }, async (t) => {
  const state = folder(t);
  const first = serve(t, "--state", state);
  const { workerd_pid } = await first.next();
  first.child.kill("SIGKILL");
  await first.ended;
  const { url } = await serve(t, "--state", state).next();
  assert.equal(alive(workerd_pid), false);
  assert.equal((await health(url)).ok, true);
});

test("the secret is made once and kept with the state", { timeout: 30_000 }, async (t) => {
  const state = folder(t);
  const platform = serve(t, "--state", state);
  await platform.next();
  const secret = readFileSync(join(state, "secret"), "utf8");
  assert.match(secret, /^[0-9a-f]{64}$/);
  platform.child.kill("SIGTERM");
  await platform.ended;
  await serve(t, "--state", state).next();
  assert.equal(readFileSync(join(state, "secret"), "utf8"), secret);
});

test("a wrong option is refused with its name", { timeout: 30_000 }, async (t) => {
  const platform = serve(t, "--state", folder(t), "--var", "novalue");
  assert.equal(await platform.ended, 1);
  assert.match(platform.errors(), /--var takes NAME=VALUE, not novalue/);
});
