//! Instant runners: they lease and report as any runner does, but run nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use yard_cli::runner::sign;
use yard_cli::{Client, ClientError};
use yard_common::landing::RunResult;
use yard_common::{LaneName, RepoName, RunnerId};
use yard_wire::lane::{Lease, Report};

/// Instant runners at work; they end when this is stopped.
#[derive(Debug)]
pub struct Crew {
    stop: Arc<AtomicBool>,
    requests: Arc<AtomicU64>,
    hands: Vec<JoinHandle<Result<(), ClientError>>>,
}

impl Crew {
    /// Starts `count` of them.
    ///
    /// # Errors
    /// When a name breaks the rules.
    pub fn start(client: &Client, repo: &RepoName, count: usize) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let requests = Arc::new(AtomicU64::new(0));
        let lane = LaneName::new(yard_wire::names::DEFAULT_LANE)?;
        let mut hands = Vec::new();
        for index in 0..count {
            let lease = Lease {
                repo: repo.clone(),
                lane: lane.clone(),
                runner: RunnerId::new(format!("instant-{index}"))?,
                environment: "0".repeat(40),
                wait_ms: 1000,
                token: None,
            };
            let (client, stop, requests) = (client.clone(), Arc::clone(&stop), Arc::clone(&requests));
            hands.push(std::thread::spawn(move || work(&client, &lease, &stop, &requests)));
        }
        Ok(Self { stop, requests, hands })
    }

    /// Requests sent so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Ends them.
    ///
    /// # Errors
    /// What a runner failed with.
    pub fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for hand in self.hands {
            hand.join().map_err(|_| anyhow::anyhow!("a runner broke"))??;
        }
        Ok(())
    }
}

fn work(client: &Client, lease: &Lease, stop: &AtomicBool, requests: &AtomicU64) -> Result<(), ClientError> {
    while !stop.load(Ordering::Relaxed) {
        requests.fetch_add(1, Ordering::Relaxed);
        let Some(work) = client.lease(lease)? else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        let green = RunResult { complete: true, green: true, ran: 1, failed: Vec::new(), skipped: 0 };
        let run = sign(client.token(), &work, green)?;
        let body = Report { run, runner: lease.runner.clone(), log: Vec::new(), fault: None, token: None };
        requests.fetch_add(1, Ordering::Relaxed);
        match client.report(&lease.repo, &lease.lane, &body) {
            Ok(_) | Err(ClientError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
