// What wrangler.toml says, read by wrangler's own parser.
import { join } from "node:path";
import { unstable_readConfig } from "wrangler";

/** The parsed configuration of the repository at `root`. */
export function config(root) {
  return unstable_readConfig({ config: join(root, "wrangler.toml") }, { hideWarnings: true });
}

/** The names of the object classes that the configuration binds. */
export function classes(root) {
  return config(root).durable_objects.bindings.map((binding) => binding.class_name);
}
