//! `yard token`: makes a token, by the platform or by its secret, or revokes one.

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use yard_common::{ForkName, Millis, RepoName, TokenId};
use yard_wire::api::{NewToken, TokenReply};
use yard_wire::token::{Claims, Scope, issue};

use crate::client::fresh_key;
use crate::output;
use crate::place::Place;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What it allows: read, submit, run, admin
    #[arg(required_unless_present = "revoke", value_delimiter = ',')]
    scopes: Vec<String>,
    /// The fork it is bound to
    #[arg(long)]
    fork: Option<ForkName>,
    /// For how many days
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=366))]
    days: u64,
    /// Revoke a token instead: the token itself, or its id
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
        println!("{}", made.token);
        return Ok(());
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
    if place.json {
        return output::json(&TokenReply { token, id: claims.id, expires: claims.expires });
    }
    println!("{token}");
    Ok(())
}

fn revoke(place: &Place, old: &str) -> Result<()> {
    let id = token_id(old)?;
    let answer = place.client()?.revoke(&place.repo()?, &id)?;
    if place.json {
        return output::json(&answer);
    }
    println!("revoked {id}");
    Ok(())
}

/// The id of a token, which its first part tells; an id is taken as it is.
fn token_id(text: &str) -> Result<TokenId> {
    if !text.starts_with("sy1.") {
        return Ok(TokenId::new(text)?);
    }
    let part = text.split('.').nth(1).unwrap_or_default();
    let claims =
        URL_SAFE_NO_PAD.decode(part).ok().and_then(|json| serde_json::from_slice::<Claims>(&json).ok());
    Ok(claims.context("this is no whole token: give the token as it was printed, or its id")?.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_tells_its_id() {
        let claims = Claims {
            id: TokenId::new("t-1").unwrap(),
            repo: None,
            fork: None,
            scopes: vec![Scope::Read],
            expires: Millis(1),
        };
        assert_eq!(token_id(&issue(b"secret", &claims)).unwrap(), claims.id);
        assert_eq!(token_id("t-1").unwrap(), claims.id);
        assert!(token_id("sy1.cut").is_err());
    }
}
