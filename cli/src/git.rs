//! The real git, as a child process, with credentials that no other user can see.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A git command in `folder` that asks nobody anything; with a token it may talk to the platform.
///
/// The token travels in the environment (`http.extraHeader`), never in the argument list.
#[must_use]
pub fn command(folder: &Path, token: Option<&str>) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    if let Some(token) = token {
        sign_in(&mut command, token);
    }
    command
}

/// Lets a git command talk to the platform as the bearer of a token.
pub fn sign_in(command: &mut Command, token: &str) {
    command
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "http.extraHeader")
        .env("GIT_CONFIG_VALUE_0", authorization(token));
}

/// The header that git sends for a token: the token is the password.
#[must_use]
pub fn authorization(token: &str) -> String {
    format!("Authorization: Basic {}", STANDARD.encode(format!("yard:{token}")))
}

/// Runs git and returns what it printed, without the last line feed.
///
/// # Errors
/// When git cannot be started or fails: with the last lines of what it said.
pub fn run(folder: &Path, token: Option<&str>, args: &[&str]) -> Result<String> {
    let out = run_bytes(folder, token, args, &[])?;
    Ok(String::from_utf8_lossy(&out).trim_end_matches('\n').to_owned())
}

/// Runs git with bytes on its standard input and returns the bytes it printed.
///
/// # Errors
/// As [`run`].
pub fn run_bytes(folder: &Path, token: Option<&str>, args: &[&str], input: &[u8]) -> Result<Vec<u8>> {
    finish(command(folder, token), args, input)
}

/// Runs a prepared git command with bytes on its standard input and returns the bytes it printed.
///
/// # Errors
/// As [`run`].
pub fn finish(mut command: Command, args: &[&str], input: &[u8]) -> Result<Vec<u8>> {
    let mut child = command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("git cannot be started: is it installed?")?;
    let stdin = child.stdin.take();
    // By a thread of its own: git answers while it reads, and stops reading when nobody takes its answers.
    let out = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A child that ends early closes its input; its exit status says more than EPIPE.
            let _ = stdin.map(|mut stdin| stdin.write_all(input));
        });
        child.wait_with_output()
    });
    let out = out.context("git broke off")?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        let lines: Vec<&str> = said.lines().collect();
        let tail = lines.iter().rev().take(5).rev().copied().collect::<Vec<_>>().join("\n");
        bail!("git {} failed: {tail}", args.first().copied().unwrap_or_default());
    }
    Ok(out.stdout)
}

/// Runs git on the network; on a terminal its own progress is seen.
///
/// # Errors
/// As [`run`].
pub fn run_shown(folder: &Path, token: &str, args: &[&str]) -> Result<()> {
    let mut command = command(folder, Some(token));
    let Some((name, rest)) = args.split_first() else { bail!("no git command") };
    if !std::io::stderr().is_terminal() {
        return finish(command, &[&[*name, "-q"], rest].concat(), &[]).map(drop);
    }
    let status = command.arg(name).arg("--progress").args(rest).stdin(Stdio::null()).status();
    if !status.context("git cannot be started: is it installed?")?.success() {
        bail!("git {name} failed");
    }
    Ok(())
}

/// One value of the configuration, if it is set.
#[must_use]
pub fn config(folder: &Path, key: &str) -> Option<String> {
    run(folder, None, &["config", "--get", key]).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_may_answer_more_than_a_pipe_holds_while_it_still_reads() {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path(), None, &["init", "-q"]).unwrap();
        let asked: String = (0..20_000).map(|n| format!("no-such-object-{n}\n")).collect();
        let out = run_bytes(dir.path(), None, &["cat-file", "--batch-check"], asked.as_bytes()).unwrap();
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 20_000);
    }
}
