//! Who works on what now, and its viewers.

use worker::{
    DurableObject, Env, Request, Response, Result, State, WebSocket, WebSocketIncomingMessage, WebSocketPair,
    durable_object,
};
use yard_common::Refusal;
use yard_wire::board::{EVENTS_PROTOCOL, Events, Publish};

use super::platform::{self, WorkerSql};
use crate::meter::{Class, timed};

/// Who works on what now, and its viewers.
#[durable_object(websocket)]
pub struct Board {
    state: State,
    host: crate::Board<WorkerSql>,
}

fn chosen(offered: &str) -> bool {
    offered.split(',').any(|protocol| protocol.trim() == EVENTS_PROTOCOL)
}

impl Board {
    /// Stores events, then shows them to who looks on; a viewer that misses one asks by its cursor.
    fn publish(&self, body: &[u8]) -> std::result::Result<(), Refusal> {
        let asked: Publish = crate::call::request(body)?;
        let news = self.host.publish(&asked)?;
        let viewers = self.state.get_websockets();
        if viewers.is_empty() {
            return Ok(());
        }
        for event in &news {
            let Ok(text) = serde_json::to_string(event) else { continue };
            for viewer in &viewers {
                // A viewer that is gone closes by itself.
                let _ = viewer.send_with_str(&text);
            }
        }
        Ok(())
    }

    /// A socket that hibernates; what happened after `?after=` comes first.
    fn open(&self, request: &Request) -> Result<Response> {
        let pair = WebSocketPair::new()?;
        self.state.accept_web_socket(&pair.server);
        let query = request.url()?;
        let after = query.query_pairs().find(|(key, _)| key == "after").and_then(|(_, n)| n.parse().ok());
        if let Some(after) = after
            && let Ok(page) = self.host.events(&Events { after, last: None })
        {
            for event in &page.events {
                pair.server.send_with_str(&serde_json::to_string(event)?)?;
            }
        }
        let response = Response::from_websocket(pair.client)?;
        // A browser that offers protocols ends a socket that chooses none of them.
        if request.headers().get("sec-websocket-protocol")?.is_some_and(|offered| chosen(&offered)) {
            response.headers().set("sec-websocket-protocol", EVENTS_PROTOCOL)?;
        }
        Ok(response)
    }

    async fn answer(&self, mut request: Request) -> Result<Response> {
        if request.headers().get("upgrade")?.is_some_and(|to| to.eq_ignore_ascii_case("websocket")) {
            return self.open(&request);
        }
        if request.path() == "/publish" {
            let body = request.bytes().await?;
            return match self.publish(&body) {
                Ok(()) => Response::from_json(&()),
                Err(refusal) => platform::problem(refusal),
            };
        }
        platform::answer(&self.host, request).await
    }
}

impl DurableObject for Board {
    fn new(state: State, env: Env) -> Self {
        platform::settings(&env);
        let host = crate::Board::new(WorkerSql::new(&state));
        Self { state, host }
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        timed(Class::Board, crate::clock::now, self.answer(request)).await
    }

    async fn websocket_message(&self, socket: WebSocket, message: WebSocketIncomingMessage) -> Result<()> {
        // The one thing that a viewer may ask: events after a cursor.
        if let WebSocketIncomingMessage::String(text) = message
            && let Ok(after) = text.trim().parse()
            && let Ok(page) = self.host.events(&Events { after, last: None })
        {
            for event in &page.events {
                socket.send_with_str(&serde_json::to_string(event)?)?;
            }
        }
        Ok(())
    }

    async fn websocket_close(
        &self,
        _socket: WebSocket,
        _code: usize,
        _reason: String,
        _clean: bool,
    ) -> Result<()> {
        Ok(())
    }

    async fn websocket_error(&self, _socket: WebSocket, _error: worker::Error) -> Result<()> {
        Ok(())
    }
}
