//! `yard token`: asks an admin's platform for a token, or signs one with the platform's secret.

use anyhow::{Context as _, Result, bail};
use yard_common::{ForkName, Millis, RepoName, TokenId};
use yard_wire::api::NewToken;
use yard_wire::token::{Claims, Scope, issue};

use crate::client::fresh_key;
use crate::output;
use crate::place::Place;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What it allows: read, submit, run, admin
    #[arg(required = true, value_delimiter = ',')]
    scopes: Vec<String>,
    /// The fork it is bound to
    #[arg(long)]
    fork: Option<ForkName>,
    /// For how many days
    #[arg(long, default_value_t = 30)]
    days: u64,
    /// Sign it here with the platform's secret from SWITCHYARD_SECRET: for whoever runs the platform
    #[arg(long)]
    sign: bool,
}

fn scope(name: &str) -> Result<Scope> {
    Ok(match name {
        "read" => Scope::Read,
        "submit" => Scope::Submit,
        "run" => Scope::Run,
        "admin" => Scope::Admin,
        other => bail!("{other:?} is no scope: read, submit, run or admin"),
    })
}

/// Prints the token.
///
/// # Errors
/// When the platform refuses, or the secret is not set.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    let scopes = args.scopes.iter().map(|name| scope(name)).collect::<Result<Vec<_>>>()?;
    let seconds = args.days.saturating_mul(86_400);
    if !args.sign {
        let body = NewToken { scopes, fork: args.fork.clone(), ttl_seconds: seconds };
        let made = place.client()?.new_token(&place.repo()?, &body)?;
        if place.json {
            return output::json(&made);
        }
        println!("{}", made.token);
        return Ok(());
    }
    let secret = std::env::var("SWITCHYARD_SECRET")
        .context("set SWITCHYARD_SECRET to the platform's secret to sign a token here")?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis();
    let claims = Claims {
        id: TokenId::new(fresh_key())?,
        repo: place.repo.as_ref().map(|name| RepoName::new(name.as_str())).transpose()?,
        fork: args.fork.clone(),
        scopes,
        expires: Millis(u64::try_from(now)?).plus(seconds.saturating_mul(1000)),
    };
    println!("{}", issue(secret.as_bytes(), &claims));
    Ok(())
}
