//! Asking the model: from what is at hand, by calls that are repeated, again after a bad answer.

use yard_common::replay::Cost;
use yard_replay::answer::{self, Replayed};
use yard_replay::brief::Brief;
use yard_replay::price::Spent;
use yard_replay::prompt::Prompt;
use yard_replay::provider::{self, Answer, Next, ProviderFault, Reply};
use yard_replay::settings::Settings;

use super::kept::{self, Kept};
use super::{Failure, Models, Replay, Stop};
use crate::api::Platform;

/// What the model made of a question.
pub struct Asked {
    /// The files.
    pub replayed: Replayed,
    /// The name under which question and answer are kept.
    pub hash: String,
    /// What answers that were at hand cost when they were given: by an early replay, or a lost delivery.
    pub before: Cost,
}

impl<P: Platform, M: Models> Replay<'_, P, M> {
    /// Asks until an answer can be used, a bad one a bounded number of times.
    pub(super) async fn ask(
        &self,
        settings: &Settings,
        (brief, spent_before): (&Brief, Spent),
        mut prompt: Prompt,
        cost: &mut Cost,
    ) -> Result<Asked, Stop> {
        let (mut round, mut before) = (0, Cost::default());
        loop {
            let hash = settings.answer_key(&prompt);
            // A bad answer of another replay is not held against this one: somebody wants it tried again.
            let may_serve = |kept: &Kept| {
                kept.replay == Some(self.pointer.replay)
                    || answer::read(&brief.files, &prompt.partly, &kept.answer.text).is_ok()
            };
            let answer = match self.at_hand(&hash).await.filter(may_serve) {
                Some(kept) => {
                    cost.model.clone_from(&kept.answer.model);
                    add(&mut before, spent(&kept.cost));
                    before.calls += kept.cost.calls;
                    kept.answer
                }
                None => self.answer(settings, &prompt, (&hash, spent_before), cost).await?,
            };
            let bad = match answer::read(&brief.files, &prompt.partly, &answer.text) {
                Ok(replayed) => return Ok(Asked { replayed, hash, before }),
                Err(bad) => bad,
            };
            if !provider::asks_again(&bad, round) {
                let tries = if round > 0 { format!(", in {} tries", round + 1) } else { String::new() };
                return Err(Stop::Failed(format!("{bad}{tries}")));
            }
            prompt = prompt.again(&answer.text, &bad.to_string());
            round += 1;
        }
    }

    async fn answer(
        &self,
        settings: &Settings,
        prompt: &Prompt,
        (hash, spent_before): (&str, Spent),
        cost: &mut Cost,
    ) -> Result<Answer, Stop> {
        self.afford(settings, prompt, spent_before.plus(spent(cost)), spent(cost))?;
        let calls_before = cost.calls;
        let answer = self.calls(settings, prompt, cost).await?;
        let price = settings.prices.of(answer.tokens_in, answer.tokens_out);
        let mut one =
            Cost { model: answer.model.clone(), calls: cost.calls - calls_before, ..Cost::default() };
        add(&mut one, price);
        add(cost, price);
        cost.model.clone_from(&answer.model);
        let key = kept::key(&self.pointer.repo, hash);
        Kept::new(prompt, answer.clone(), one, self.pointer.replay)
            .keep(self.event.platform.blobs(), &key)
            .await;
        Ok(answer)
    }

    async fn at_hand(&self, hash: &str) -> Option<Kept> {
        Kept::find(self.event.platform.blobs(), &kept::key(&self.pointer.repo, hash)).await
    }

    /// The repository's own limit of a day and the platform's: the smaller counts.
    fn afford(&self, settings: &Settings, prompt: &Prompt, change: Spent, now: Spent) -> Result<(), Stop> {
        let policy = &self.job.policy;
        let micro_usd = policy.micro_usd_per_day.saturating_sub(self.job.budget_left);
        let today = Spent { micro_usd, ..Spent::default() }.plus(now);
        let mut budget = settings.budget;
        let most = budget.day.micro_usd.unwrap_or(u64::MAX).min(policy.micro_usd_per_day);
        budget.day.micro_usd = Some(most);
        budget.allows(today, change, settings.at_most(prompt)).map_err(Stop::Failed)
    }

    /// Calls until there is an answer, as often as the schedule allows.
    async fn calls(&self, settings: &Settings, prompt: &Prompt, cost: &mut Cost) -> Result<Answer, Stop> {
        let mut calls = 0;
        loop {
            calls += 1;
            cost.calls += 1;
            let fault = match self.call(settings, prompt).await {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            add(cost, settings.prices.of(fault.tokens_in, fault.tokens_out));
            match provider::next(&fault, calls, self.age, self.pointer.replay.0) {
                Next::Within(ms) => self.models.pause(ms).await,
                Next::Later(seconds) => return Err(Stop::Again(seconds)),
                Next::Stop => return Err(Stop::Failed(fault.why)),
            }
        }
    }

    async fn call(&self, settings: &Settings, prompt: &Prompt) -> Result<Answer, ProviderFault> {
        let lost = |failure| match failure {
            Failure::TimedOut => ProviderFault::timed_out(settings),
            Failure::Unreachable(error) => ProviderFault::unreachable(&error),
        };
        match provider::request(settings, prompt) {
            Some(request) => {
                let raw = self.models.post(&request, settings.timeout_ms).await.map_err(lost)?;
                let retry_after = raw.retry_after.as_deref();
                provider::answer(
                    settings,
                    prompt,
                    &Reply { status: raw.status, retry_after, body: &raw.body },
                )
            }
            None => {
                let input = provider::input(settings, prompt);
                let value =
                    self.models.run(&settings.model, &input, settings.timeout_ms).await.map_err(lost)?;
                provider::said(settings, prompt, &value)
            }
        }
    }
}

/// A cost as a sum.
pub(super) fn spent(cost: &Cost) -> Spent {
    Spent { tokens_in: cost.tokens_in, tokens_out: cost.tokens_out, micro_usd: cost.micro_usd }
}

/// Two costs together; the model is the first one's.
pub(super) fn both(cost: &Cost, before: &Cost) -> Cost {
    let mut sum = cost.clone();
    add(&mut sum, spent(before));
    sum.calls += before.calls;
    sum
}

fn add(cost: &mut Cost, spent: Spent) {
    cost.tokens_in = cost.tokens_in.saturating_add(spent.tokens_in);
    cost.tokens_out = cost.tokens_out.saturating_add(spent.tokens_out);
    cost.micro_usd = cost.micro_usd.saturating_add(spent.micro_usd);
}
