use std::collections::BTreeSet;

use serde_json::json;

use super::*;

fn settings(kind: &str) -> Settings {
    Settings::read(|name| match name {
        "SWITCHYARD_MODEL" => Some("m-1".into()),
        "SWITCHYARD_MODEL_KIND" => Some(kind.into()),
        "SWITCHYARD_MODEL_URL" => Some("http://host/v1".into()),
        "SWITCHYARD_MODEL_TOKENS_OUT" => Some("99".into()),
        _ => None,
    })
    .unwrap()
    .unwrap()
}

fn prompt() -> Prompt {
    Prompt {
        system: "S".into(),
        turns: vec![(Role::User, "U".into())],
        tokens_estimate: 12,
        hash: "h".into(),
        cut: Vec::new(),
        partly: BTreeSet::new(),
    }
    .again("A", "F")
}

fn read(kind: &str, status: u16, body: &str) -> Result<Answer, ProviderFault> {
    answer(&settings(kind), &prompt(), &Reply { status, retry_after: Some("2"), body: body.as_bytes() })
}

#[test]
fn requests_have_the_shape_that_the_protocols_ask_for() {
    let request = super::request(&settings("openai"), &prompt()).unwrap();
    assert_eq!(request.url, "http://host/v1/chat/completions");
    assert!(request.headers.contains(&("authorization", HeaderValue::Bearer)));
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body["model"], "m-1");
    assert_eq!(body["max_tokens"], 99);
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|turn| turn["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);

    let request = super::request(&settings("anthropic"), &prompt()).unwrap();
    assert_eq!(request.url, "http://host/v1/messages");
    assert!(request.headers.contains(&("x-api-key", HeaderValue::Key)));
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body["system"], "S");
    assert_eq!(body["messages"][1], json!({ "role": "assistant", "content": "A" }));

    assert_eq!(super::request(&settings("workers-ai"), &prompt()), None);
    assert_eq!(input(&settings("workers-ai"), &prompt()).messages.len(), 4);
}

#[test]
fn answers_of_all_protocols_are_read() {
    let body = json!({ "model": "m-1b", "choices": [{ "message": { "content": "hi" }, "finish_reason": "stop" }],
                       "usage": { "prompt_tokens": 5, "completion_tokens": 2 } });
    let openai = read("openai", 200, &body.to_string()).unwrap();
    let expected = Answer {
        text: "hi".into(),
        model: "m-1b".into(),
        tokens_in: 5,
        tokens_out: 2,
        finish: "stop".into(),
    };
    assert_eq!(openai, expected);
    let body = json!({ "content": [{ "type": "thinking", "thinking": "x" }, { "type": "text", "text": "hi" }],
                       "stop_reason": "end_turn",
                       "usage": { "input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 3 } });
    let anthropic = read("anthropic", 200, &body.to_string()).unwrap();
    assert_eq!((anthropic.text.as_str(), anthropic.tokens_in), ("hi", 8));
    // Without usage, the estimate counts: a budget is not to be had for nothing.
    let binding = read("workers-ai", 200, r#"{"response":"hi, you"}"#).unwrap();
    assert_eq!((binding.tokens_in, binding.tokens_out), (prompt().tokens_estimate, 2));
}

#[test]
fn an_answer_that_was_cut_or_declined_is_a_fault_that_is_paid_for() {
    for (kind, body) in [
        (
            "openai",
            json!({ "choices": [{ "message": { "content": "x" }, "finish_reason": "length" }],
                           "usage": { "prompt_tokens": 5, "completion_tokens": 99 } }),
        ),
        (
            "openai",
            json!({ "choices": [{ "message": { "refusal": "no" }, "finish_reason": "stop" }],
                           "usage": { "prompt_tokens": 5, "completion_tokens": 99 } }),
        ),
        (
            "anthropic",
            json!({ "content": [], "stop_reason": "refusal",
                              "usage": { "input_tokens": 5, "output_tokens": 99 } }),
        ),
    ] {
        let fault = read(kind, 200, &body.to_string()).unwrap_err();
        assert_eq!((fault.retry, fault.tokens_in, fault.tokens_out), (Retry::Never, 5, 99), "{fault:?}");
    }
}

#[test]
fn statuses_say_whether_to_call_again() {
    let body = r#"{"error":{"message":"slow\ndown","type":"x"}}"#;
    let fault = read("openai", 429, body).unwrap_err();
    assert_eq!(fault.retry, Retry::After(2000));
    assert_eq!(fault.why, "the provider limits the rate (status 429: \"slow down\")");
    for status in [408, 500, 502, 503, 529] {
        assert_eq!(read("anthropic", status, "<html>").unwrap_err().retry, Retry::After(2000));
    }
    for status in [301, 400, 401, 402, 403, 404, 413, 422] {
        assert_eq!(read("anthropic", status, "<html>").unwrap_err().retry, Retry::Never);
    }
    let date = Reply { status: 503, retry_after: Some("Wed, 21 Oct 2015 07:28:00 GMT"), body: b"" };
    assert_eq!(answer(&settings("openai"), &prompt(), &date).unwrap_err().retry, Retry::After(0));
}

#[test]
fn a_reply_that_is_no_answer_is_a_fault_and_never_a_panic() {
    let deep = "[".repeat(100_000);
    for body in
        ["", "{}", "null", "[]", "<html>busy", r#"{"choices":[]}"#, r#"{"choices":[{"message":7}]}"#, &deep]
    {
        for kind in ["openai", "anthropic", "workers-ai"] {
            match read(kind, 200, body) {
                Err(fault) => assert!(matches!(fault.retry, Retry::After(_)), "{fault:?}"),
                Ok(answer) => assert_eq!(answer.text, "", "{body}"),
            }
        }
    }
    let error = read("openai", 200, r#"{"error":"model is loading"}"#).unwrap_err();
    assert!(error.why.contains("model is loading"), "{}", error.why);
    let huge = vec![b' '; REPLY_BYTES_MAX + 1];
    let reply = Reply { status: 200, retry_after: None, body: &huge };
    assert_eq!(answer(&settings("openai"), &prompt(), &reply).unwrap_err().retry, Retry::Never);
}

#[test]
fn short_pauses_are_waited_for_and_long_ones_leave_the_batch() {
    let fault = |after| ProviderFault::new(Retry::After(after), "x");
    assert_eq!(next(&fault(0), 1, 0, 0), Next::Within(500));
    assert_eq!(next(&fault(0), 2, 0, 0), Next::Within(2000));
    assert_eq!(next(&fault(0), 3, 0, 0), Next::Later(10));
    assert_eq!(next(&fault(3000), 1, 0, 0), Next::Within(3000));
    assert_eq!(next(&fault(60_000), 1, 0, 0), Next::Later(60));
    assert_eq!(next(&fault(0), 3, 90_000, 0), Next::Later(180));
    assert_eq!(next(&fault(0), 3, 270_000, 0), Next::Stop);
    assert_eq!(next(&fault(3_600_000), 1, 0, 0), Next::Stop);
    assert_eq!(next(&ProviderFault::new(Retry::Never, "x"), 1, 0, 0), Next::Stop);
    // The salt spreads, by a quarter at most.
    assert_eq!(next(&fault(0), 1, 0, 255), Next::Within(624));
    let (mut age, mut deliveries) = (0, 1);
    while let Next::Later(seconds) = next(&fault(0), 3, age, u64::MAX) {
        age += u64::from(seconds) * 1000;
        deliveries += 1;
    }
    assert!((4..=6).contains(&deliveries) && age <= AGE_MS_MAX, "{deliveries} deliveries, {age} ms");
}
