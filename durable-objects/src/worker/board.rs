//! Who works on what now, and its viewers.

use worker::{DurableObject, Env, Request, Response, Result, State, durable_object};

/// Who works on what now, and its viewers.
#[durable_object(fetch)]
pub struct Board {
    _state: State,
    _env: Env,
}

impl DurableObject for Board {
    fn new(state: State, env: Env) -> Self {
        Self { _state: state, _env: env }
    }

    async fn fetch(&self, _request: Request) -> Result<Response> {
        Response::error("not built yet", 501)
    }
}
