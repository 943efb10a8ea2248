use std::collections::BTreeMap;

use super::*;

fn read(vars: &[(&str, &str)]) -> Result<Option<Settings>, String> {
    let vars: BTreeMap<String, String> =
        vars.iter().map(|(name, value)| (format!("SWITCHYARD_MODEL{name}"), (*value).to_owned())).collect();
    Settings::read(|name| vars.get(name).cloned())
}

#[test]
fn without_a_model_there_are_no_settings() {
    assert_eq!(read(&[]), Ok(None));
    assert_eq!(read(&[("", " "), ("_URL", "http://x/v1")]), Ok(None));
}

#[test]
fn all_settings_are_read() {
    let settings = read(&[
        ("", "m"),
        ("_URL", "http://127.0.0.1:11434/v1/"),
        ("_TIMEOUT_SECONDS", "7"),
        ("_PRICE_IN", "0.25"),
        ("_PRICE_OUT", "10"),
        ("_BUDGET_DAY_USD", "1000"),
        ("_BUDGET_CHANGE_TOKENS", "7"),
        ("_BUDGET_CHANGE_USD", "1.5"),
    ])
    .unwrap()
    .unwrap();
    assert_eq!(settings.kind, Kind::OpenAi);
    assert_eq!(settings.url, "http://127.0.0.1:11434/v1");
    assert_eq!(settings.timeout_ms, 7000);
    assert_eq!(settings.prices.micro_usd_per_million_in, 250_000);
    assert_eq!(settings.prices.micro_usd_per_million_out, 10_000_000);
    assert_eq!(settings.budget.day, Limit { tokens: None, micro_usd: Some(1_000_000_000) });
    assert_eq!(settings.budget.change, Limit { tokens: Some(7), micro_usd: Some(1_500_000) });
    let anthropic = read(&[("", "m"), ("_KIND", "anthropic")]).unwrap().unwrap();
    assert_eq!(anthropic.url, "https://api.anthropic.com");
    assert_eq!(read(&[("", "m"), ("_KIND", "workers-ai")]).unwrap().unwrap().url, "");
}

#[test]
fn a_bad_setting_is_named() {
    for (name, value) in [
        ("_KIND", "gpt"),
        ("_URL", "file:///etc/passwd"),
        ("_URL", "http://user:key@host/v1"),
        ("_URL", "http://host/v1?key=x"),
        ("_URL", "http:///v1"),
        ("_TIMEOUT_SECONDS", "0"),
        ("_TIMEOUT_SECONDS", "soon"),
        ("_TOKENS_OUT", "-1"),
        ("_PRICE_IN", "1e3"),
        ("_PRICE_OUT", "0.0000001"),
        ("_BUDGET_DAY_USD", ".5"),
    ] {
        let mut vars = vec![("", "m")];
        if name != "_URL" {
            vars.push(("_URL", "http://host/v1"));
        }
        vars.push((name, value));
        let sentence = read(&vars).unwrap_err();
        assert!(sentence.contains(&format!("SWITCHYARD_MODEL{name} ")), "{name}={value}: {sentence}");
    }
    assert!(read(&[("", "m")]).unwrap_err().contains("SWITCHYARD_MODEL_URL is not set"));
}
