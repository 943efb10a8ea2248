//! One merge queue of a repository.

use std::cell::Cell;
use std::time::Duration;

use worker::{Delay, DurableObject, Env, Request, Response, Result, State, durable_object};
use yard_common::{Millis, Refusal};
use yard_wire::Method as _;
use yard_wire::lane::Lease;

use super::platform::{self, D1, R2, Stubs, WorkerSql};
use super::repository::Workerd;
use crate::arm;
use crate::call::Object as _;
use crate::meter::{Class, timed};

/// A runner waits for work at most this long, in milliseconds.
const WAIT_MS_MAX: u64 = 20_000;
/// How often a waiting runner's call looks for work, in milliseconds. A look reads memory alone, but waking
/// up for it costs the object about 0.2 ms.
const LOOK_MS: u64 = 50;

/// One merge queue of a repository.
#[durable_object(alarm)]
pub struct Lane {
    state: State,
    host: Option<crate::Lane<Workerd>>,
    armed: Cell<Option<Millis>>,
}

impl Lane {
    /// Sets the alarm to when the host wants to be woken, where it is not set to an earlier time.
    async fn arm(&self, host: &crate::Lane<Workerd>) {
        if host.is_driving() {
            return;
        }
        let now = crate::clock::now();
        let Ok(Some(due)) = host.due(now) else { return };
        if !arm::lane(self.armed.get(), due, now) {
            return;
        }
        self.armed.set(Some(due));
        self.set_alarm(due.since(now)).await;
    }

    async fn set_alarm(&self, offset_ms: u64) {
        let offset = i64::try_from(offset_ms).unwrap_or(i64::MAX);
        if self.state.storage().set_alarm(offset).await.is_err() {
            self.armed.set(None);
        }
    }

    /// Holds a runner's call until there may be work for it.
    async fn wait_for_work(&self, host: &crate::Lane<Workerd>, wait_ms: u64) {
        let until = crate::clock::now().plus(wait_ms.min(WAIT_MS_MAX));
        while !host.has_work() && crate::clock::now() < until {
            Delay::from(Duration::from_millis(LOOK_MS)).await;
        }
    }

    async fn lease(&self, host: &crate::Lane<Workerd>, mut request: Request) -> Result<Response> {
        let body = request.bytes().await?;
        let wait_ms = crate::call::request::<Lease>(&body).map_or(0, |asked| asked.wait_ms);
        let first = host.handle(Lease::NAME, &body, crate::clock::now()).await;
        let answer = match first {
            Ok(none) if none == b"null" && wait_ms > 0 => {
                self.arm(host).await;
                self.wait_for_work(host, wait_ms).await;
                host.handle(Lease::NAME, &body, crate::clock::now()).await
            }
            answer => answer,
        };
        match answer {
            Ok(bytes) => {
                let response = Response::from_bytes(bytes)?;
                response.headers().set("content-type", "application/json")?;
                Ok(response)
            }
            Err(refusal) => platform::problem(refusal),
        }
    }

    async fn answer(&self, request: Request) -> Result<Response> {
        let Some(host) = &self.host else { return platform::problem(unbound()) };
        let response = if request.path().trim_start_matches('/') == Lease::NAME {
            self.lease(host, request).await
        } else {
            platform::answer(host, request).await
        };
        self.arm(host).await;
        response
    }

    async fn wake(&self) -> Result<Response> {
        // Armed again first: whatever happens below, the object wakes up once more.
        self.armed.set(None);
        self.set_alarm(arm::LANE_REARM_MS).await;
        if let Some(host) = &self.host {
            let due = match host.alarm(&crate::clock::now).await {
                Ok(due) => due,
                Err(_) => Some(crate::clock::now().plus(arm::LANE_AGAIN_MS)),
            };
            let now = crate::clock::now();
            match due {
                Some(due) => {
                    self.armed.set(Some(due));
                    self.set_alarm(due.since(now)).await;
                }
                None => {
                    self.armed.set(None);
                    // A fault leaves the alarm that was set above: one look too many.
                    let _ = self.state.storage().delete_alarm().await;
                }
            }
        }
        Response::ok("")
    }
}

fn unbound() -> Refusal {
    Refusal::Internal { during: "finding the bucket and the index".into() }
}

impl DurableObject for Lane {
    fn new(state: State, env: Env) -> Self {
        platform::settings(&env);
        let sql = WorkerSql::new(&state);
        let host = match (R2::new(&env), D1::new(&env)) {
            (Ok(packs), Ok(index)) => Some(crate::Lane::new(sql, packs, index, Stubs(env))),
            _ => None,
        };
        Self { state, host, armed: Cell::new(None) }
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        timed(Class::Lane, crate::clock::now, self.answer(request)).await
    }

    async fn alarm(&self) -> Result<Response> {
        timed(Class::Lane, crate::clock::now, self.wake()).await
    }
}
