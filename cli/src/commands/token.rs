//! `yard token`: makes a token, by the platform or by its secret, or revokes one.

use anyhow::{Context as _, Result, bail};
use yard_common::{ForkName, Millis, RepoName, TokenId};
use yard_wire::api::{NewToken, TokenReply};
use yard_wire::token::{Claims, Scope, issue};

use crate::client::fresh_key;
use crate::output;
use crate::place::Place;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What it allows, with commas between: read (clone, status), submit (push to forks, offer, claim),
    /// run (test candidates), admin (all)
    #[arg(required_unless_present = "revoke", value_delimiter = ',')]
    scopes: Vec<String>,
    /// The fork that it is bound to: it may push to no other
    #[arg(long)]
    fork: Option<ForkName>,
    /// For how many days
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=366))]
    days: u64,
    /// Revoke a token instead: its id, or the token itself where it was signed by --sign
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["scopes", "fork", "sign"])]
    revoke: Option<String>,
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

/// Prints the token, or revokes one.
///
/// # Errors
/// When the platform refuses, or the secret is not set.
pub fn run(place: &Place, args: &Args) -> Result<()> {
    if let Some(old) = &args.revoke {
        return revoke(place, old);
    }
    let scopes = args.scopes.iter().map(|name| scope(name)).collect::<Result<Vec<_>>>()?;
    let seconds = args.days.saturating_mul(86_400);
    if !args.sign {
        let body = NewToken { scopes, fork: args.fork.clone(), ttl_seconds: seconds };
        let made = place.client()?.new_token(&place.repo()?, &body)?;
        if place.json {
            return output::json(&made);
        }
        return tell(&made);
    }
    let secret = std::env::var("SWITCHYARD_SECRET")
        .ok()
        .context("set SWITCHYARD_SECRET to the platform's secret to sign a token here")?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis();
    let claims = Claims {
        id: TokenId::new(fresh_key())?,
        repo: place.repo.as_ref().map(|name| RepoName::new(name.as_str())).transpose()?,
        fork: args.fork.clone(),
        scopes,
        expires: Millis(u64::try_from(now)?).plus(seconds.saturating_mul(1000)),
    };
    let token = issue(secret.as_bytes(), &claims);
    let made = TokenReply { token, id: claims.id, expires: claims.expires };
    if place.json {
        return output::json(&made);
    }
    tell(&made)
}

/// The token alone goes to standard output, so that `$(yard token run)` is one.
fn tell(made: &TokenReply) -> Result<()> {
    eprintln!(
        "token {}, good until {}Z; end it with  yard token --revoke {}",
        made.id,
        made.expires.utc(),
        made.id
    );
    output::text(&format!("{}\n", made.token))
}

fn revoke(place: &Place, old: &str) -> Result<()> {
    let answer = place.client()?.revoke(&place.repo()?, &TokenId::new(old)?)?;
    if place.json {
        return output::json(&answer);
    }
    let id = answer.get("id").and_then(serde_json::Value::as_str).unwrap_or(old);
    output::text(&format!("revoked {id}\n"))
}
