//! Reads a module that cargo compiled for wasm32 and writes the module and the JavaScript that workerd loads.
//!
//! `bindgen MODULE.wasm FOLDER` writes `FOLDER/index.js` and `FOLDER/index_bg.wasm`. `bindgen --check CARGO_LOCK`
//! fails unless that lock file names the very wasm-bindgen this program was built with: the two halves of the
//! glue share a private format that changes with every release.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

const OWN_LOCK: &str = include_str!("../Cargo.lock");

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bindgen: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--check", lock] => check(Path::new(lock)),
        [module, folder] => generate(Path::new(module), Path::new(folder)),
        _ => bail!("usage: bindgen MODULE.wasm FOLDER | bindgen --check CARGO_LOCK"),
    }
}

/// Writes the glue; the options are those that the `worker` crate's recovery from traps needs.
fn generate(module: &Path, folder: &Path) -> Result<()> {
    Bindgen::new()
        .module(true)?
        .input_path(module)
        .out_name("index")
        .typescript(false)
        .reset_state_function(true)
        .force_enable_abort_handler(true)
        .generate(folder)
        .with_context(|| format!("no glue for {}", module.display()))
}

fn check(lock: &Path) -> Result<()> {
    let text = std::fs::read_to_string(lock).with_context(|| format!("cannot read {}", lock.display()))?;
    let wanted = locked(&text, "wasm-bindgen").context("the lock file names no wasm-bindgen")?;
    let own = locked(OWN_LOCK, "wasm-bindgen-shared").context("own lock file is incomplete")?;
    if wanted != own {
        bail!(
            "Cargo.lock has wasm-bindgen {wanted}, but scripts/bindgen is built on {own}: set the version of \
             wasm-bindgen-cli-support in scripts/bindgen/Cargo.toml to ={wanted} and run `make setup`"
        );
    }
    Ok(())
}

/// The version of a package in the text of a `Cargo.lock`.
fn locked<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    lines.next()?;
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::locked;

    #[test]
    fn a_locked_version_is_found_by_the_whole_name() {
        let lock = "[[package]]\nname = \"a-b\"\nversion = \"1.0.0\"\n\n\
                    [[package]]\nname = \"a\"\nversion = \"2.0.0\"\n";
        assert_eq!(locked(lock, "a"), Some("2.0.0"));
        assert_eq!(locked(lock, "b"), None);
    }
}
