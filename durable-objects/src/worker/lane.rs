//! One merge queue of a repository.

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

/// One merge queue of a repository.
#[durable_object(fetch)]
pub struct Lane {
    _state: State,
    _env: Env,
}

impl DurableObject for Lane {
    fn new(state: State, env: Env) -> Self {
        Self { _state: state, _env: env }
    }

    async fn fetch(&self, _request: Request) -> Result<Response> {
        Response::error("not built yet", 501)
    }
}
