//! A repository's or a fork's objects, refs, submissions and landings.

use std::cell::Cell;

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};
use yard_common::{Millis, Refusal};

use super::platform::{self, D1, R2, Stubs, WorkerSql};
use crate::arm;
use crate::meter::{Class, timed};
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
    /// When the alarm is due that was set, where that is soon.
    armed: Cell<Option<Millis>>,
}

impl Repository {
    /// Wakes the object when effects are to be done; an alarm that is set is left alone.
    async fn arm(&self, host: &crate::Repository<Workerd>) {
        let now = crate::clock::now();
        // The handler's end may have taken an alarm away.
        if arm::repository_rests(self.armed.get(), now) {
            return;
        }
        let Ok(Some(due)) = host.due() else { return };
        let storage = self.state.storage();
        let soon = storage.get_alarm().await.ok().flatten().and_then(|soon| u64::try_from(soon).ok());
        if arm::repository(soon.map(Millis), now.plus(due), now) {
            let offset = i64::try_from(due).unwrap_or(i64::MAX);
            if storage.set_alarm(offset).await.is_err() {
                return;
            }
        }
        self.armed.set(arm::remembered(now, due));
    }

    async fn answer(&self, request: Request) -> Result<Response> {
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

    async fn wake(&self) -> Result<Response> {
        // Armed again first: whatever happens below, the object wakes up once more.
        let _ =
            self.state.storage().set_alarm(i64::try_from(arm::REPOSITORY_REARM_MS).unwrap_or(5_000)).await;
        self.armed.set(None);
        if let Some(host) = &self.host {
            let storage = self.state.storage();
            let due = match host.alarm(crate::clock::now()).await {
                Ok(due) => due,
                Err(_) => Some(arm::REPOSITORY_REARM_MS),
            };
            let done = match due {
                Some(due) => storage.set_alarm(i64::try_from(due).unwrap_or(5_000)).await,
                None => storage.delete_alarm().await,
            };
            self.armed.set(None);
            if let (Ok(()), Some(due)) = (done, due) {
                self.armed.set(arm::remembered(crate::clock::now(), due));
            }
        }
        Response::ok("")
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
        Self { state, host, armed: Cell::new(None) }
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        timed(Class::Repository, crate::clock::now, self.answer(request)).await
    }

    async fn alarm(&self) -> Result<Response> {
        timed(Class::Repository, crate::clock::now, self.wake()).await
    }
}
