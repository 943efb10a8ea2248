//! The isolate's memory, sampled through workerd's inspector: JS heap and the buffers behind it
//! (WASM's linear memory is one of them).

use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use yard_loadtest::platform;

/// A sampler at work.
pub struct Sampler {
    child: Child,
}

/// The highest values seen, in MiB.
#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize)]
pub struct Peak {
    /// JS heap in use.
    pub heap_mib: f64,
    /// Buffers: WASM memory and array buffers.
    pub buffers_mib: f64,
    /// Both together at one moment.
    pub total_mib: f64,
    /// How many samples were taken.
    pub samples: u64,
}

impl Sampler {
    /// Starts sampling every 100 ms.
    ///
    /// # Errors
    /// When node cannot be started.
    pub fn start(inspector: &str) -> Result<Self> {
        let child = Command::new("node")
            .current_dir(platform::root()?)
            .args(["scripts/heap.mjs", inspector])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the sampler cannot be started")?;
        Ok(Self { child })
    }

    /// Ends it; the peak.
    ///
    /// # Errors
    /// When it broke off.
    pub fn stop(mut self) -> Result<Peak> {
        drop(self.child.stdin.take());
        let out = self.child.wait_with_output()?;
        serde_json::from_slice(&out.stdout).context("the sampler printed no peak")
    }
}
