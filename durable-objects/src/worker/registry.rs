//! Names, owners and revoked tokens.

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

use super::platform::{self, WorkerSql};
use crate::meter::{Class, timed};

/// Which repositories and forks there are.
#[durable_object(fetch)]
pub struct Registry {
    host: crate::Registry<WorkerSql>,
}

impl DurableObject for Registry {
    fn new(state: State, env: Env) -> Self {
        platform::settings(&env);
        Self { host: crate::Registry::new(WorkerSql::new(&state)) }
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        timed(Class::Registry, crate::clock::now, platform::answer(&self.host, request)).await
    }
}
