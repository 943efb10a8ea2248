//! The description of the API, made from the route table.

use serde_json::{Map, Value, json};

use crate::router::{Need, ROUTES, Route};

fn parameters(route: &Route) -> Vec<Value> {
    let named = route.pattern.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    named
        .map(|(name, _)| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .chain(crate::router::filters(route.endpoint).iter().map(|name| {
            json!({ "name": name, "in": "query", "required": false, "schema": { "type": "string" } })
        }))
        .chain((route.verb == crate::router::Verb::Post && !route.endpoint.is_git()).then(|| {
            json!({
                "name": "Idempotency-Key", "in": "header", "required": true, "schema": { "type": "string" },
                "description": "A repeat under the same key gets the first answer and changes nothing."
            })
        }))
        .collect()
}

fn content(of: &str) -> Value {
    let kind = match of {
        "Git" => "application/x-git",
        "Text" => "text/plain",
        _ => "application/json",
    };
    let schema =
        if kind == "application/json" { json!({ "title": of }) } else { json!({ "type": "string" }) };
    json!({ kind: { "schema": schema } })
}

fn scope(need: Need) -> &'static str {
    match need {
        Need::Nothing => "none",
        Need::Read => "read",
        Need::Submit => "submit",
        Need::Run => "run",
        Need::Admin => "admin",
        Need::PlatformAdmin => "admin of the whole platform",
    }
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "summary": route.what,
        "description": format!("Scope: {}.", scope(route.need)),
        "operationId": format!("{:?}{}", route.endpoint, if route.pattern.contains("{fork}") { "OfFork" } else { "" }),
        "parameters": parameters(route),
        "responses": {
            "200": { "description": "Done.", "content": content(route.reply) },
            "default": { "$ref": "#/components/responses/Problem" },
        },
        "security": if route.need == Need::Nothing { json!([]) } else { json!([{ "bearer": [] }, { "basic": [] }]) },
    });
    if let (false, Some(fields)) = (route.body.is_empty(), operation.as_object_mut()) {
        fields.insert("requestBody".into(), json!({ "required": true, "content": content(route.body) }));
    }
    operation
}

/// The OpenAPI 3.1 document.
#[must_use]
pub fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.pattern).or_insert_with(|| json!({}));
        if let Some(operations) = path.as_object_mut() {
            operations.insert(route.verb.as_str().to_ascii_lowercase(), operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Switchyard", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "basic": { "type": "http", "scheme": "basic", "description": "git: the token as password." },
            },
            "responses": { "Problem": {
                "description": "Refused: what is wrong and what to do.",
                "content": { "application/problem+json": { "schema": {
                    "type": "object",
                    "required": ["type", "title", "status", "detail", "retryable", "reason"],
                    "properties": {
                        "type": { "type": "string" }, "title": { "type": "string" },
                        "status": { "type": "integer" }, "detail": { "type": "string" },
                        "retryable": { "type": "boolean" }, "retry_after": { "type": "integer" },
                        "reason": { "type": "object" },
                    },
                } } },
            } },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_in_the_document() {
        let document = document();
        assert_eq!(document["openapi"], "3.1.0");
        for route in ROUTES {
            let operation = &document["paths"][route.pattern][route.verb.as_str().to_ascii_lowercase()];
            assert_eq!(operation["summary"], route.what, "{}", route.pattern);
            assert_eq!(operation["security"] == json!([]), route.need == Need::Nothing);
            assert_eq!(operation.get("requestBody").is_some(), !route.body.is_empty());
        }
    }

    #[test]
    fn operation_ids_are_unique() {
        let mut ids: Vec<String> =
            ROUTES.iter().map(|route| operation(route)["operationId"].as_str().unwrap().to_owned()).collect();
        let all = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }
}
