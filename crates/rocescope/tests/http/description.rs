//! The description says what is served, all of it and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use rocescope::serve::{ENDPOINTS, openapi};
use serde_json::{Value, json};

use crate::site::Site;

#[test]
fn every_path_and_parameter_that_is_served_is_described_and_no_other() {
    let served: BTreeMap<&str, BTreeSet<&str>> = ENDPOINTS
        .iter()
        .map(|endpoint| {
            let in_path = endpoint.path.split('/').filter_map(|part| part.strip_prefix('{'));
            let in_path = in_path.map(|part| part.strip_suffix('}').unwrap());
            (endpoint.path, endpoint.parameters.iter().copied().chain(in_path).collect())
        })
        .collect();
    assert_eq!(served.len(), ENDPOINTS.len());
    let paths = openapi()["paths"].as_object().unwrap();
    let described: BTreeMap<&str, BTreeSet<&str>> = paths
        .iter()
        .map(|(path, item)| {
            let methods: Vec<_> = item.as_object().unwrap().keys().collect();
            assert_eq!(methods, ["get"], "{path}");
            let parameters = item["get"]["parameters"].as_array();
            let names = parameters.into_iter().flatten().map(|p| {
                let place = if path.contains(&format!("{{{}}}", p["name"].as_str().unwrap())) {
                    "path"
                } else {
                    "query"
                };
                assert_eq!((&p["in"], &p["required"]), (&json!(place), &json!(place == "path")));
                p["name"].as_str().unwrap()
            });
            (path.as_str(), names.collect())
        })
        .collect();
    assert_eq!(served, described);
}

#[test]
fn every_reference_leads_somewhere_and_every_part_is_used() {
    fn walk<'v>(value: &'v Value, found: &mut BTreeSet<&'v str>) {
        match value {
            Value::Object(members) => {
                if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                    found.insert(reference);
                }
                members.values().for_each(|value| walk(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(value, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    walk(openapi(), &mut found);
    for reference in &found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(openapi().pointer(pointer).is_some(), "{reference}");
    }
    for kind in ["schemas", "responses"] {
        for name in openapi()["components"][kind].as_object().unwrap().keys() {
            let reference = format!("#/components/{kind}/{name}");
            assert!(found.contains(reference.as_str()), "{reference} is not used");
        }
    }
}

#[test]
fn the_words_for_refusals_are_those_of_the_collector() {
    let described = &openapi()["components"]["schemas"]["Refused"]["propertyNames"]["enum"];
    let words: Vec<_> = rocescope::collector::Refusal::ALL.map(|refusal| refusal.word()).into();
    assert_eq!(*described, json!(words));
}

#[tokio::test]
async fn it_is_served_as_it_is_with_the_version_of_the_program() {
    let site = Site::new("description", "", "").start().await;
    let served = site.get("/api/openapi.json").await;
    assert_eq!(served, *openapi());
    assert_eq!(served["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(served["openapi"], "3.1.0");
    site.stop().await;
}
