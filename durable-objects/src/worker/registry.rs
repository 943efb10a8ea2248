//! Names, owners and revoked tokens.

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

/// Names, owners and revoked tokens.
#[durable_object(fetch)]
pub struct Registry {
    _state: State,
    _env: Env,
}

impl DurableObject for Registry {
    fn new(state: State, env: Env) -> Self {
        Self { _state: state, _env: env }
    }

    async fn fetch(&self, _request: Request) -> Result<Response> {
        Response::error("not built yet", 501)
    }
}
