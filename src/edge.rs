//! The handlers that workerd calls: requests, queue batches, the cron trigger.

use serde_json::json;
use worker::{Context, Env, MessageBatch, Request, Response, Result, ScheduleContext, ScheduledEvent, event};

#[event(start)]
fn start() {
    console_error_panic_hook::set_once();
}

#[event(fetch)]
async fn fetch(request: Request, env: Env, _context: Context) -> Result<Response> {
    match request.path().as_str() {
        "/healthz" => Response::from_json(&json!({ "ok": true })),
        _ => env.assets("ASSETS")?.fetch_request(request).await,
    }
}

#[event(queue)]
async fn queue(batch: MessageBatch<serde_json::Value>, _env: Env, _context: Context) -> Result<()> {
    batch.ack_all();
    Ok(())
}

#[event(scheduled)]
async fn scheduled(_event: ScheduledEvent, _env: Env, _context: ScheduleContext) {}
