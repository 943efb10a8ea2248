//! A repository's or a fork's objects, refs, submissions and landings.

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

/// A repository's or a fork's objects, refs, submissions and landings.
#[durable_object(fetch)]
pub struct Repository {
    _state: State,
    _env: Env,
}

impl DurableObject for Repository {
    fn new(state: State, env: Env) -> Self {
        Self { _state: state, _env: env }
    }

    async fn fetch(&self, _request: Request) -> Result<Response> {
        Response::error("not built yet", 501)
    }
}
