//! The handlers that workerd calls: requests, queue batches, the cron trigger.

mod platform;
mod replays;
mod requests;
mod stream;

use worker::{
    Context, Env, MessageBatch, MessageExt as _, Request, Response, Result, ScheduleContext, ScheduledEvent,
    event,
};
use yard_objects::meter::{Class, timed};
use yard_objects::worker::Stubs;
use yard_objects::{Calls as _, clock};
use yard_wire::names::REGISTRY;
use yard_wire::{lane, names, registry};

#[event(start)]
fn start() {
    console_error_panic_hook::set_once();
}

#[event(fetch)]
async fn fetch(request: Request, env: Env, context: Context) -> Result<Response> {
    timed(Class::Edge, clock::now, requests::answer(request, env, &context)).await
}

/// Replays are made; a message of another queue is acknowledged, and said so in the log.
#[event(queue)]
async fn queue(batch: MessageBatch<serde_json::Value>, env: Env, _context: Context) -> Result<()> {
    if batch.queue() == replays::QUEUE {
        return replays::take(batch, env).await;
    }
    for message in batch.messages()? {
        worker::console_warn!(
            "queue {}: message {} is of no known kind and is dropped",
            batch.queue(),
            message.id()
        );
        message.ack();
    }
    Ok(())
}

/// Wakes every lane: a lost hint costs a minute.
#[event(scheduled)]
async fn scheduled(_event: ScheduledEvent, env: Env, _context: ScheduleContext) {
    let stubs = Stubs(env);
    let repos = match stubs.call(REGISTRY, &registry::ListRepos { repo: None }).await {
        Ok(repos) => repos,
        Err(refusal) => return worker::console_error!("cron: {refusal}"),
    };
    for entry in repos {
        for lane in entry.lanes {
            let hint = lane::Hint { repo: entry.repo.clone(), lane };
            if let Err(refusal) = stubs.call(&names::lane(&hint.repo, &hint.lane), &hint).await {
                worker::console_warn!("cron: lane {} of {}: {refusal}", hint.lane, hint.repo);
            }
        }
    }
}
