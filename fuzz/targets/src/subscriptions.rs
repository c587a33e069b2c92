//! Subscriptions in any order of events: what the state machine says, keeps and does not say.

use std::collections::{BTreeMap, BTreeSet};

use manage::netconf::Session;
use manage::operation::Transport;
use manage::push::Message;
use manage::read::{Encoding, What};
use manage::restconf::Request;

use crate::answers::{document, json, nothing_hidden};
use crate::served::{ADMIN, SETTINGS, Served, USER, limits, schema};

/// Lines of one input.
const LINES_MAX: usize = 64;
/// Messages of one subscription that are taken at a time.
const MESSAGES_MAX: usize = 512;

/// Lines: `u` or `a` (who may read everything), an operation and its input in JSON over RESTCONF; `n`
/// and an operation in XML over NETCONF; `later` and milliseconds; `rows` and `gone` with bits for
/// queues; `take` with a number and how many; `missed`, `state`, `close`; `forget` with a number.
///
/// # Panics
/// Where something does not hold.
pub fn subscriptions(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let told = Run::new(true).of(text);
    told.iter().for_each(|said| nothing_hidden(data, said));
    assert_eq!(told, Run::new(false).of(text), "nothing hidden is told");
}

struct Run {
    served: Served,
    session: Session,
    /// What the user was told.
    told: Vec<String>,
    /// Subscriptions that were established, and whose.
    owners: BTreeMap<u32, &'static str>,
    /// Those of which nothing may come any more.
    dead: BTreeSet<u32>,
    /// Those that have said that they are at their end.
    terminated: BTreeSet<u32>,
}

impl Run {
    fn new(hidden: bool) -> Self {
        Self {
            served: Served::new(hidden),
            session: Session::new(schema(), USER, 4, limits()).0,
            told: Vec::new(),
            owners: BTreeMap::new(),
            dead: BTreeSet::new(),
            terminated: BTreeSet::new(),
        }
    }

    fn of(mut self, text: &str) -> Vec<String> {
        for line in text.split('\n').take(LINES_MAX) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let number = || rest.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0);
            match word {
                "u" => self.json(USER, rest),
                "a" => self.json(ADMIN, rest),
                "n" => self.xml(rest),
                "later" => self.served.later(number()),
                "rows" => self.served.publish(usize::try_from(number()).unwrap_or(0), 0),
                "gone" => self.served.publish(0, usize::try_from(number()).unwrap_or(0)),
                "missed" => self.served.missed(),
                "take" => {
                    let many = rest.split(' ').nth(1).and_then(|text| text.parse().ok());
                    self.take(u32::try_from(number()).unwrap_or(0), many.unwrap_or(1));
                }
                "forget" => {
                    let id = u32::try_from(number()).unwrap_or(0);
                    self.served.subscriptions.borrow_mut().forget(id);
                    self.deleted(Some(id.into()));
                }
                "close" => {
                    self.served.subscriptions.borrow_mut().closed(Transport::Netconf(4));
                    let mine = self.owners.iter().filter(|(_, owner)| **owner == "n");
                    self.dead.extend(mine.map(|(id, _)| *id));
                }
                "state" => self.state(),
                _ => {}
            }
            self.bounded();
            // What is different for others must not hold up the user.
            let of_others: Vec<u32> =
                self.owners.iter().filter(|(_, owner)| **owner == "a").map(|(id, _)| *id).collect();
            of_others.into_iter().for_each(|id| self.take(id, MESSAGES_MAX));
        }
        let all: Vec<u32> = self.owners.keys().copied().collect();
        all.into_iter().for_each(|id| self.drain(id));
        self.told
    }

    /// Who is there is counted, whoever is at the end.
    fn bounded(&self) {
        let held = self.served.subscriptions.borrow();
        let open = self.owners.keys().filter(|id| !held.over(**id)).count();
        assert!(open <= SETTINGS.subscriptions_max, "{open} subscriptions have something to say");
        assert!(held.len() <= SETTINGS.subscriptions_max);
        for id in &self.dead {
            assert!(held.over(*id), "subscription {id} was ended");
        }
    }

    fn json(&mut self, user: &'static str, rest: &str) {
        let (name, input) = rest.split_once(' ').unwrap_or((rest, "{}"));
        let module = match name {
            "resync-subscription" => "ietf-yang-push",
            _ => "ietf-subscribed-notifications",
        };
        let path = format!("/restconf/operations/{module}:{name}");
        let body = format!("{{\"{module}:input\":{input}}}");
        let request = Request {
            method: "POST",
            path: &path,
            content_type: Some("application/yang-data+json"),
            body: body.as_bytes(),
            ..Request::default()
        };
        let response = self.served.ask(user, &request);
        let text = String::from_utf8(response.body).expect("UTF-8");
        if response.status == 200 {
            let output = json(&text);
            let id = output["ietf-subscribed-notifications:output"]["id"].as_u64();
            let owner = if user == USER { "u" } else { "a" };
            self.established(id.and_then(|id| u32::try_from(id).ok()), owner);
        } else if response.status == 204 && name == "delete-subscription" {
            self.deleted(json(&body)["ietf-subscribed-notifications:input"]["id"].as_u64());
        }
        if user == USER {
            self.told.push(format!("{} {text}", response.status));
        }
    }

    fn xml(&mut self, operation: &str) {
        let request = format!(
            "<rpc xmlns='urn:ietf:params:xml:ns:netconf:base:1.0' message-id='1' \
             xmlns:s='urn:ietf:params:xml:ns:yang:ietf-subscribed-notifications' \
             xmlns:p='urn:ietf:params:xml:ns:yang:ietf-yang-push' \
             xmlns:ds='urn:ietf:params:xml:ns:yang:ietf-datastores' \
             xmlns:if='urn:ietf:params:xml:ns:yang:ietf-interfaces'>{operation}</rpc>"
        );
        let (octets, _) = self.served.answer(&mut self.session, &request);
        let text = String::from_utf8(octets).expect("UTF-8");
        let text = text.strip_suffix("]]>]]>").expect("a mark");
        let parsed = document(text);
        let named = |name: &str| {
            let found =
                parsed.root_element().children().find(|node| node.tag_name().name() == name);
            found.and_then(|node| node.text()).and_then(|text| text.parse().ok())
        };
        let mut asked = operation.split("delete-subscription");
        if let Some(id) = named("id") {
            self.established(Some(id), "n");
        } else if text.contains("<ok/>") && asked.nth(1).is_some() {
            let id = operation.split_once("id>").and_then(|(_, rest)| rest.split_once('<'));
            self.deleted(id.and_then(|(id, _)| id.trim().parse().ok()));
        }
        self.told.push(text.to_owned());
    }

    fn established(&mut self, id: Option<u32>, owner: &'static str) {
        let id = id.expect("what is established has a number");
        assert!(self.owners.insert(id, owner).is_none(), "subscription {id} twice");
    }

    fn deleted(&mut self, id: Option<u64>) {
        let id = id.and_then(|id| u32::try_from(id).ok());
        self.dead.extend(id.filter(|id| self.owners.contains_key(id)));
    }

    /// What the user is shown of subscriptions, which has to be valid in every mode.
    fn state(&mut self) {
        for query in [None, Some("with-defaults=report-all"), Some("content=config")] {
            let path = "/restconf/data/ietf-subscribed-notifications:subscriptions";
            let request = Request { method: "GET", path, query, ..Request::default() };
            let response = self.served.ask(ADMIN, &request);
            let text = String::from_utf8(response.body).expect("UTF-8");
            assert_eq!(response.status, 200, "{text}");
            let found = schema().read(Encoding::Json, What::Data, &text);
            assert!(found.is_ok(), "{found:?} in {text}");
        }
    }

    fn take(&mut self, id: u32, many: usize) {
        for _ in 0..many.min(MESSAGES_MAX) {
            let Some(message) = self.served.take(id) else { return };
            self.said(id, &message);
        }
    }

    /// Everything that waits, and what comes where that ends a suspension.
    fn drain(&mut self, id: u32) {
        let mut octets = 0;
        let mut taken = 0;
        while let Some(message) = self.served.take(id) {
            octets += message.text.len();
            taken += 1;
            assert!(taken <= MESSAGES_MAX, "no end of messages for subscription {id}");
            self.said(id, &message);
        }
        let most = SETTINGS.waiting_octets_max + 2 * Served::WHOLE_OCTETS;
        assert!(octets <= most, "{octets} octets waited for subscription {id}");
    }

    fn said(&mut self, id: u32, message: &Message) {
        let owner = *self.owners.get(&id).unwrap_or_else(|| panic!("{id} was never established"));
        assert!(!self.dead.contains(&id), "subscription {id} is dead");
        assert!(!self.terminated.contains(&id), "subscription {id} has said that it is at its end");
        let whole = message.document();
        let json_text = whole.starts_with('{');
        if json_text {
            json(&whole);
            let text = format!("{{{}}}", message.content());
            let found = schema().read(Encoding::Json, What::Notification, &text);
            assert!(found.is_ok(), "{found:?} in {text}");
            assert!(text.contains(&format!("\"id\":{id}")), "{text}");
        } else {
            document(&whole);
            let text = message.content();
            let found = schema().read(Encoding::Xml, What::Notification, &text);
            assert!(found.is_ok(), "{found:?} in {text}");
            assert!(text.contains(&format!("<id>{id}</id>")), "{text}");
        }
        if message.content().contains("subscription-terminated") {
            self.terminated.insert(id);
        }
        if owner != "a" {
            self.told.push(whole);
        }
    }
}
