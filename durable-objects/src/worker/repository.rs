//! A repository's or a fork's objects, refs, submissions and landings.

use std::cell::Cell;

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};
use yard_common::Refusal;

use super::platform::{self, D1, R2, Stubs, WorkerSql};
use crate::points;

/// What workerd gives a Repository.
pub struct Workerd;

impl crate::Platform for Workerd {
    type Sql = WorkerSql;
    type Blobs = R2;
    type Index = D1;
    type Calls = Stubs;
}

/// A repository's or a fork's objects, refs, submissions and landings.
#[durable_object(alarm)]
pub struct Repository {
    state: State,
    host: Option<crate::Repository<Workerd>>,
    armed: Cell<bool>,
}

impl Repository {
    /// Wakes the object when effects are to be done; an alarm that is set is left alone.
    async fn arm(&self, host: &crate::Repository<Workerd>) {
        if self.armed.get() {
            return;
        }
        let Ok(Some(due)) = host.due() else { return };
        let due = i64::try_from(due).unwrap_or(i64::MAX);
        let soon = self.state.storage().get_alarm().await.ok().flatten();
        let wanted = i64::try_from(crate::clock::now().0).unwrap_or(0).saturating_add(due);
        if soon.is_none_or(|soon| soon > wanted) && self.state.storage().set_alarm(due).await.is_err() {
            return;
        }
        self.armed.set(due < 60_000);
    }
}

fn unbound() -> Refusal {
    Refusal::Internal { during: "finding the bucket and the index".into() }
}

impl DurableObject for Repository {
    fn new(state: State, env: Env) -> Self {
        let secret = platform::settings(&env);
        let sql = WorkerSql::new(&state);
        let host = match (R2::new(&env), D1::new(&env)) {
            (Ok(packs), Ok(index)) => Some(crate::Repository::new(sql, packs, index, Stubs(env), secret)),
            _ => None,
        };
        Self { state, host, armed: Cell::new(false) }
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let Some(host) = &self.host else { return platform::problem(unbound()) };
        let response = platform::answer(host, request).await;
        self.arm(host).await;
        if points::on() {
            // A kill before this loses what the event wrote; a kill after it loses the reply alone.
            let _ = self.state.storage().sync().await;
            points::point("repository.durable");
        }
        response
    }

    async fn alarm(&self) -> Result<Response> {
        // Armed again first: whatever happens below, the object wakes up once more.
        let rearmed = self.state.storage().set_alarm(5_000_i64).await;
        self.armed.set(rearmed.is_ok());
        if let Some(host) = &self.host {
            let storage = self.state.storage();
            self.armed.set(false);
            let due = match host.alarm(crate::clock::now()).await {
                Ok(due) => due,
                Err(_) => Some(5_000),
            };
            let done = match due {
                Some(due) => storage.set_alarm(i64::try_from(due).unwrap_or(5_000)).await,
                None => storage.delete_alarm().await,
            };
            self.armed.set(done.is_ok() && due.is_some_and(|due| due < 60_000));
        }
        Response::ok("")
    }
}
