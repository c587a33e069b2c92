//! Subscriptions, message by message.

use std::sync::Arc;

use manage::access::Policy;
use manage::error::write_json;
use manage::json;
use manage::operation::{Caller, Transport};
use manage::push::Settings;
use manage::read::{Encoding, What};
use manage::xml;
use manage::xml::Element;
use serde_json::{Value, json};

use super::scene::{row, schema};
use super::subscriber::{Scene, app_tag, edits, kinds, of, on_change, periodic};

// QUE-pub.1
#[test]
fn each_completed_interval_is_one_replacement_of_the_whole_entry() {
    let mut scene = Scene::new(Settings::default());
    let id = scene.establish("alice", on_change(), json!({})).expect("established");
    let first = scene.next(id).expect("everything first");
    let entries = &first["ietf-yang-push:push-update"]["datastore-contents"]["ietf-interfaces:interfaces"]
        ["interface"];
    assert_eq!(entries.as_array().map(Vec::len), Some(2));
    scene.publish(vec![
        Arc::new(row("e1", "q3", 2)),
        Arc::new(row("e1", "q3", 3)),
        Arc::new(row("e1", "q/4", 1)),
    ]);
    let all = scene.all(id);
    assert_eq!(kinds(&all), ["push-change-update"]);
    let edits = edits(&all[0]);
    let told: Vec<_> = edits
        .iter()
        .map(|edit| {
            (
                edit["operation"].as_str().expect("one"),
                edit["value"]["ietf-pfc-queue-telemetry:queue"][0]["interval-id"]
                    .as_str()
                    .expect("one"),
            )
        })
        .collect();
    assert_eq!(told, [("create", "1"), ("replace", "2"), ("replace", "3")]);
    assert_eq!(
        edits[1]["target"],
        "/ietf-interfaces:interfaces/interface=e1/ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue=q3"
    );
    assert!(edits[0]["target"].as_str().expect("a path").ends_with("/queue=q%2F4"));
    let value = edits[1]["value"]["ietf-pfc-queue-telemetry:queue"][0]
        .as_object()
        .expect("an entry")
        .clone();
    assert_eq!(value.len(), 12, "{value:?}");
    assert_eq!(scene.next(id), None);
    let place = row("e1", "q/4", 1).place;
    scene.rows.rows.borrow_mut().retain(|row| row.place != place);
    scene.with(|subscriptions, world, now| subscriptions.published(&[], &[place], world, now));
    let gone = edits_of(&mut scene, id);
    assert_eq!(
        (gone.len(), &gone[0]["operation"], gone[0].get("value")),
        (1, &json!("delete"), None)
    );
}

fn edits_of(scene: &mut Scene, id: u32) -> Vec<Value> {
    edits(&scene.next(id).expect("a message"))
}

#[test]
fn without_sync_only_changes_come() {
    let mut scene = Scene::new(Settings::default());
    let trigger = json!({"ietf-yang-push:on-change": {"sync-on-start": false}});
    let id = scene.establish("alice", trigger, json!({})).expect("established");
    assert_eq!(scene.next(id), None);
    scene.publish(vec![Arc::new(row("e2", "q3", 2))]);
    assert_eq!(edits_of(&mut scene, id).len(), 1);
}

// QUE-sec.1
#[test]
fn a_subscriber_hears_of_nothing_that_its_user_may_not_read() {
    let mut scene = Scene::new(Settings::default());
    let id = scene.establish("carol", on_change(), json!({})).expect("established");
    let first = scene.next(id).expect("an update").to_string();
    assert!(first.contains("\"e2\"") && !first.contains("\"e1\""), "{first}");
    scene.publish(vec![Arc::new(row("e1", "q3", 2))]);
    assert_eq!(scene.next(id), None);
    scene.publish(vec![Arc::new(row("e1", "q3", 3)), Arc::new(row("e2", "q3", 2))]);
    assert_eq!(edits_of(&mut scene, id).len(), 1);
    // Rules that are read anew hold at once.
    scene.policy = Policy::default();
    scene.publish(vec![Arc::new(row("e2", "q3", 3))]);
    assert_eq!(scene.next(id), None);
}

// QUE-sec.1
#[test]
fn what_is_written_once_goes_to_those_who_may_read_the_same_and_to_nobody_else() {
    let filter = json!({"ietf-yang-push:datastore-xpath-filter": "/ietf-interfaces:interfaces"});
    for trigger in [on_change(), json!({"ietf-yang-push:on-change": {"dampening-period": 100}})] {
        let mut scene = Scene::new(Settings::default());
        // Whose rules are the same, between those whose rules are not.
        let ids = ["alice", "carol", "dave", "nobody", "carol"].map(|user| {
            scene.establish(user, trigger.clone(), filter.clone()).expect("established")
        });
        ids.iter().for_each(|id| drop(scene.all(*id)));
        scene.publish(vec![Arc::new(row("e1", "q3", 2)), Arc::new(row("e2", "q3", 2))]);
        scene.later(1000);
        let counts = ids.map(|id| scene.next(id).map_or(0, |message| edits(&message).len()));
        assert_eq!(counts, [2, 1, 2, 0, 1], "{trigger}");
    }
}

// QUE-sec.1
#[test]
fn everything_is_read_once_for_users_with_the_same_rules() {
    let mut scene = Scene::new(Settings::default());
    let filter = json!({"ietf-yang-push:datastore-xpath-filter": "/ietf-interfaces:interfaces"});
    let ids = ["alice", "dave", "carol", "alice"]
        .map(|user| scene.establish(user, periodic(100), filter.clone()).expect("established"));
    ids.iter().for_each(|id| drop(scene.all(*id)));
    scene.rows.reads.set(0);
    scene.later(1000);
    let told = ids.map(|id| scene.next(id).expect("an update").to_string());
    assert_eq!(scene.rows.reads.get(), 2);
    assert_eq!(told.map(|text| text.contains("\"e1\"")), [true, true, false, true]);
}

#[test]
fn the_dampened_get_what_each_of_them_has_not_had() {
    let mut scene = Scene::new(Settings::default());
    let trigger = json!({"ietf-yang-push:on-change": {"dampening-period": 100}});
    let early = scene.establish("alice", trigger.clone(), json!({})).expect("established");
    scene.publish(vec![Arc::new(row("e1", "q3", 2))]);
    // Both are due at once, and this one has had the row in its first update.
    let late = scene.establish("dave", trigger, json!({})).expect("established");
    scene.publish(vec![Arc::new(row("e2", "q3", 2))]);
    [early, late].iter().for_each(|id| drop(scene.all(*id)));
    scene.later(1000);
    let counts = [early, late].map(|id| edits_of(&mut scene, id).len());
    assert_eq!(counts, [2, 1]);
}

#[test]
fn filters_cut_what_is_sent() {
    let mut scene = Scene::new(Settings::default());
    let subtree = json!({"ietf-yang-push:datastore-subtree-filter": {"ietf-interfaces:interfaces": {"interface": [{"name": "e2"}]}}});
    let xpath = json!({"ietf-yang-push:datastore-xpath-filter": "/ietf-interfaces:interfaces/interface[name='e2']/ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue/backlog-ns"});
    for (filter, leaves) in [(subtree, 12), (xpath, 2)] {
        let id = scene.establish("alice", on_change(), filter.clone()).expect("established");
        let first = scene.next(id).expect("an update").to_string();
        assert!(first.contains("\"e2\"") && !first.contains("\"e1\""), "{first}");
        scene.publish(vec![Arc::new(row("e1", "q3", 2)), Arc::new(row("e2", "q3", 2))]);
        let edits = edits_of(&mut scene, id);
        assert_eq!(edits.len(), 1);
        let entry = edits[0]["value"]["ietf-pfc-queue-telemetry:queue"][0]
            .as_object()
            .expect("an entry")
            .clone();
        assert_eq!(entry.len(), leaves, "{filter}: {entry:?}");
    }
}

#[test]
fn periods_are_kept_and_what_went_by_is_left_out() {
    let mut scene = Scene::new(Settings::default());
    let id = scene.establish("alice", periodic(100), json!({})).expect("established");
    assert_eq!(kinds(&scene.all(id)), ["push-update"]);
    assert_eq!(scene.later(999), Some(1000));
    assert_eq!(scene.next(id), None);
    assert_eq!(scene.later(1), Some(2000));
    assert_eq!(kinds(&scene.all(id)), ["push-update"]);
    assert_eq!(scene.later(3500), Some(5000));
    assert_eq!(kinds(&scene.all(id)), ["push-update"]);
    // Changes are nothing to it.
    scene.publish(vec![Arc::new(row("e2", "q3", 2))]);
    assert_eq!(scene.next(id), None);
    let anchored =
        json!({"ietf-yang-push:periodic": {"period": 1000, "anchor-time": "2000-01-01T00:00:03Z"}});
    let id = scene.establish("alice", anchored, json!({})).expect("established");
    assert_eq!(scene.next(id), None, "not before its time");
}

#[test]
fn dampened_changes_come_as_the_last_of_each() {
    let mut scene = Scene::new(Settings::default());
    let trigger = json!({"ietf-yang-push:on-change": {"dampening-period": 100}});
    let id = scene.establish("alice", trigger, json!({})).expect("established");
    assert_eq!(kinds(&scene.all(id)), ["push-update"]);
    for interval in 2..5 {
        scene.publish(vec![Arc::new(row("e1", "q3", interval))]);
    }
    assert_eq!(scene.next(id), None);
    assert_eq!(scene.later(1000), Some(2000));
    let edits = edits_of(&mut scene, id);
    assert_eq!(
        (edits.len(), &edits[0]["value"]["ietf-pfc-queue-telemetry:queue"][0]["interval-id"]),
        (1, &json!("4"))
    );
    assert_eq!(scene.later(1000), None, "nothing has changed");
    scene.publish(vec![Arc::new(row("e1", "q3", 5))]);
    assert_eq!(edits_of(&mut scene, id).len(), 1);
}

// QUE-pub.1
#[test]
fn a_queue_that_came_while_it_was_dampened_is_created_and_one_that_also_went_never_was() {
    let trigger = json!({"ietf-yang-push:on-change": {"dampening-period": 100}});
    let mut scene = Scene::new(Settings::default());
    let id = scene.establish("alice", trigger, json!({})).expect("established");
    scene.all(id);
    let place = |queue| Arc::new(row("e1", queue, 1)).place.clone();
    let gone = |scene: &mut Scene, queue| {
        let gone = [place(queue)];
        scene.with(|subscriptions, world, now| subscriptions.published(&[], &gone, world, now));
    };
    for interval in 1..=2 {
        scene.publish(["new", "short"].map(|queue| Arc::new(row("e1", queue, interval))).to_vec());
    }
    gone(&mut scene, "short");
    // One that was there goes and comes again; another one goes.
    gone(&mut scene, "q3");
    scene.publish(vec![Arc::new(row("e1", "q3", 2))]);
    let away = [Arc::new(row("e2", "q3", 1)).place.clone()];
    scene.with(|subscriptions, world, now| subscriptions.published(&[], &away, world, now));
    scene.later(1000);
    let mut told: Vec<(String, String)> = edits_of(&mut scene, id)
        .iter()
        .map(|edit| {
            let text = |name: &str| edit[name].as_str().expect("text").to_owned();
            (text("operation"), text("target").rsplit_once('=').expect("a key").1.to_owned())
        })
        .collect();
    told.sort();
    let expected = [("create", "new"), ("delete", "q3"), ("replace", "q3")];
    assert_eq!(told, expected.map(|(operation, queue)| (operation.into(), queue.into())));
    // From then on it is one that was there.
    scene.publish(vec![Arc::new(row("e1", "new", 3))]);
    scene.later(1000);
    assert_eq!(edits_of(&mut scene, id)[0]["operation"], "replace");
}

// QUE-sec.1
#[test]
fn everything_at_times_has_the_subscriptions_too_as_reading_has() {
    let mut scene = Scene::new(Settings::default());
    let id = scene.establish("alice", periodic(100), json!({})).expect("established");
    let first = scene.next(id).expect("an update").to_string();
    assert!(first.contains("ietf-subscribed-notifications:subscriptions"), "{first}");
    let id = scene.establish("carol", periodic(100), json!({})).expect("established");
    let first = scene.next(id).expect("an update").to_string();
    assert!(!first.contains("ietf-subscribed-notifications:subscriptions"), "{first}");
}

#[test]
fn a_subscriber_that_does_not_read_is_suspended_and_then_gets_everything() {
    let settings = Settings { waiting_octets_max: 4000, ..Settings::default() };
    let mut scene = Scene::new(settings);
    let id = scene.establish("alice", on_change(), json!({})).expect("established");
    let other = scene.establish("alice", on_change(), json!({})).expect("established");
    for interval in 2..40 {
        scene.publish(vec![Arc::new(row("e1", "q3", interval))]);
        assert!(!scene.all(other).is_empty(), "the other goes on");
    }
    let state = scene
        .subscriptions
        .top(schema().top("ietf-subscribed-notifications", "subscriptions").expect("there"), None)
        .expect("made");
    let shown = json::object(&[state]);
    assert!(
        shown.contains("\"state\":\"suspended\"") && shown.contains("\"state\":\"active\""),
        "{shown}"
    );
    schema().read(Encoding::Json, What::Datastore, &shown).expect("valid");
    let all = scene.all(id);
    let kinds = kinds(&all);
    assert_eq!(kinds.iter().filter(|kind| *kind == "subscription-suspended").count(), 1);
    assert_eq!(
        kinds[kinds.len() - 3..],
        ["subscription-suspended", "subscription-resumed", "push-update"]
    );
    assert!(all.last().expect("one").to_string().contains("\"39\""));
    scene.publish(vec![Arc::new(row("e1", "q3", 40))]);
    assert_eq!(edits_of(&mut scene, id).len(), 1, "and goes on");
}

#[test]
fn one_that_never_reads_is_ended() {
    let settings = Settings { waiting_octets_max: 2000, ..Settings::default() };
    let mut scene = Scene::new(settings);
    let id = scene.establish("alice", on_change(), json!({})).expect("established");
    for interval in 2..40 {
        scene.publish(vec![Arc::new(row("e1", "q3", interval))]);
    }
    assert_eq!(scene.later(59_999), Some(60_000));
    assert!(!scene.subscriptions.over(id));
    scene.later(1);
    assert!(scene.subscriptions.is_empty());
    let kinds = kinds(&scene.all(id));
    assert_eq!(kinds[kinds.len() - 2..], ["subscription-suspended", "subscription-terminated"]);
    assert!(scene.subscriptions.over(id));
}

#[test]
fn rows_that_went_by_are_made_good_and_said() {
    let mut scene = Scene::new(Settings::default());
    let id = scene.establish("alice", on_change(), json!({})).expect("established");
    scene.all(id);
    let rows = scene.rows.rows.borrow().clone();
    scene.with(|subscriptions, world, now| subscriptions.missed(&rows, world, now));
    let all = scene.all(id);
    assert_eq!(kinds(&all), ["push-update"]);
    assert_eq!(all[0]["ietf-yang-push:push-update"]["incomplete-update"], json!([null]));
}

#[test]
fn what_cannot_be_granted_is_refused_with_its_reason() {
    let settings = Settings { subscriptions_max: 3, of_user_max: 2, ..Settings::default() };
    let mut scene = Scene::new(settings);
    let push = |name: &str| format!("ietf-yang-push:{name}");
    let subscribed = |name: &str| format!("ietf-subscribed-notifications:{name}");
    // The tags and statuses of RFC 8640, section 7, and RFC 8650, section 3.3.
    let (bad, unsupported) = (("invalid-value", None), ("operation-not-supported", Some(501)));
    for (trigger, more, expected, kind) in [
        (periodic(9), json!({}), push("period-unsupported"), bad),
        (
            on_change(),
            json!({"ietf-yang-push:datastore": "ietf-datastores:running"}),
            push("datastore-not-subscribable"),
            bad,
        ),
        (
            json!({"ietf-yang-push:on-change": {"excluded-change": ["create"]}}),
            json!({}),
            push("cant-exclude"),
            unsupported,
        ),
        (
            on_change(),
            json!({"ietf-yang-push:datastore-subtree-filter": {"ietf-yang-library:yang-library": {}}}),
            push("on-change-unsupported"),
            unsupported,
        ),
        (
            on_change(),
            json!({"ietf-yang-push:datastore-xpath-filter":
                "/ietf-yang-library:yang-library | /ietf-netconf-acm:nacm[x | y]"}),
            push("on-change-unsupported"),
            unsupported,
        ),
        (
            on_change(),
            json!({"ietf-yang-push:datastore-xpath-filter": "//*//*"}),
            subscribed("filter-unsupported"),
            bad,
        ),
        (
            on_change(),
            json!({"ietf-yang-push:datastore-xpath-filter": "/y:a"}),
            subscribed("filter-unsupported"),
            bad,
        ),
    ] {
        let refused = scene.establish("alice", trigger, more).expect_err(&expected);
        let text = write_json(std::slice::from_ref(&refused));
        assert!(text.contains(&format!("\"error-app-tag\":\"{expected}\"")), "{text}");
        assert!(!text.contains("\"reason\""), "said once: {text}");
        assert_eq!((refused.tag.word(), refused.status), kind, "{expected}");
        assert_eq!(app_tag(refused), expected);
    }
    let hint =
        write_json(&[scene.establish("alice", periodic(9), json!({})).expect_err("too short")]);
    assert!(hint.contains("\"period-hint\":10"), "{hint}");
    let past = json!({"stop-time": "2026-01-01T00:00:00Z"});
    assert_eq!(
        scene.establish("alice", on_change(), past).expect_err("past").tag.word(),
        "invalid-value"
    );
    let caller = Caller { user: "alice".into(), transport: Transport::Netconf(3) };
    let json = json!({"encoding": "ietf-subscribed-notifications:encode-json"});
    assert_eq!(
        app_tag(scene.establish_by(&caller, on_change(), json).expect_err("not there")),
        subscribed("encoding-unsupported")
    );
    let stream = scene.call(&of("alice"), "establish-subscription", &json!({"stream": "NETCONF"}));
    assert_eq!(stream.expect_err("no stream").tag.word(), "invalid-value");
    assert!(scene.subscriptions.is_empty());
    for (user, granted) in
        [("alice", true), ("alice", true), ("alice", false), ("dave", true), ("dave", false)]
    {
        let found = scene.establish(user, on_change(), json!({}));
        assert_eq!(found.is_ok(), granted, "{user}");
        if let Err(refused) = found {
            assert_eq!((refused.tag.word(), refused.tag.status()), ("resource-denied", 409));
            assert_eq!(app_tag(refused), subscribed("insufficient-resources"));
        }
    }
}

#[test]
fn only_its_own_subscriber_changes_a_subscription() {
    let mut scene = Scene::new(Settings::default());
    let id = scene.establish("alice", on_change(), json!({})).expect("established");
    scene.all(id);
    for name in ["delete-subscription", "resync-subscription"] {
        let refused = scene.call(&of("dave"), name, &json!({"id": id})).expect_err("not his");
        assert_eq!((refused.tag.word(), refused.status), ("invalid-value", Some(404)));
        assert!(app_tag(refused).contains("no-such-subscription"));
    }
    scene.call(&of("alice"), "resync-subscription", &json!({"id": id})).expect("hers");
    assert_eq!(kinds(&scene.all(id)), ["push-update"]);
    let wanted = json!({"id": id, "ietf-yang-push:datastore": "ietf-datastores:operational", "ietf-yang-push:datastore-subtree-filter": {"ietf-interfaces:interfaces": {"interface": [{"name": "e2"}]}}, "ietf-yang-push:on-change": {}});
    scene.call(&of("alice"), "modify-subscription", &wanted).expect("hers");
    assert!(!scene.all(id)[0].to_string().contains("\"e1\""));
    let other = json!({"id": id, "ietf-yang-push:datastore": "ietf-datastores:operational", "ietf-yang-push:periodic": {"period": 100}});
    assert_eq!(
        scene
            .call(&of("alice"), "modify-subscription", &other)
            .expect_err("another kind")
            .tag
            .word(),
        "invalid-value"
    );
    scene.call(&of("alice"), "delete-subscription", &json!({"id": id})).expect("hers");
    assert!(scene.subscriptions.over(id));
    assert!(scene.subscriptions.ready().contains(&id), "its reader is told");
    // And again: it works and delivers.
    let id = scene.establish("alice", on_change(), json!({})).expect("established");
    assert_eq!(kinds(&scene.all(id)), ["push-update"]);
    scene.call(&of("dave"), "kill-subscription", &json!({"id": id})).expect("whoever may call it");
    assert_eq!(kinds(&scene.all(id)), ["subscription-terminated"]);
    assert!(scene.subscriptions.over(id));
}

#[test]
fn a_stop_time_and_the_end_of_a_session_end_it() {
    let mut scene = Scene::new(Settings::default());
    let stop = json!({"stop-time": "2026-10-30T00:00:02Z"});
    let id = scene.establish("alice", on_change(), stop).expect("established");
    scene.all(id);
    assert_eq!(scene.later(0), Some(2000));
    scene.later(2000);
    assert!(scene.subscriptions.over(id));
    let caller = Caller { user: "alice".into(), transport: Transport::Netconf(3) };
    let id = scene.establish_by(&caller, on_change(), json!({})).expect("established");
    let message = scene
        .with(|subscriptions, world, now| subscriptions.take(id, world, now))
        .expect("an update");
    let content = message.content();
    Element::read(&content, &xml::Limits::default()).expect("well-formed");
    schema().read(Encoding::Xml, What::Notification, &content).expect("valid");
    scene.publish(vec![Arc::new(row("e1", "q3", 2))]);
    let message = scene
        .with(|subscriptions, world, now| subscriptions.take(id, world, now))
        .expect("a change");
    schema().read(Encoding::Xml, What::Notification, &message.content()).expect("valid");
    scene.subscriptions.closed(Transport::Netconf(4));
    assert!(!scene.subscriptions.over(id));
    scene.subscriptions.closed(Transport::Netconf(3));
    assert!(scene.subscriptions.over(id));
}

#[test]
fn what_can_be_subscribed_to_is_told() {
    let scene = Scene::new(Settings::default());
    let definition =
        schema().top("ietf-system-capabilities", "system-capabilities").expect("there");
    let location = |_: &manage::schema::Module| None;
    let nodes = [
        scene.subscriptions.top(definition, None).expect("made"),
        manage::library::yang_library(schema(), location).expect("made"),
        manage::library::modules_state(schema(), location).expect("made"),
    ];
    let text = json::object(&nodes);
    schema().read(Encoding::Json, What::Datastore, &text).expect("valid");
    assert!(text.contains("state-changes"), "{text}");
    let mut text = String::new();
    xml::write(&mut text, schema(), &nodes, None);
    schema().read(Encoding::Xml, What::Datastore, &text).expect("valid XML");
}

// libyang writes times anew with the offset of where it runs, so where that is decides what comes
// here: behind the last year of UTC, or before its first.
#[test]
fn a_time_that_cannot_be_shown_in_utc_is_refused() {
    let mut scene = Scene::new(Settings::default());
    let stops = |time: &str| json!({ "stop-time": time });
    for (time, taken) in [
        ("9999-12-30T00:00:00Z", true),
        ("9999-12-31T23:59:59-14:00", false),
        ("9999-12-31T23:59:59-12:00", false),
        ("0000-01-01T00:00:00+14:00", false),
    ] {
        let found = scene.establish("alice", periodic(100), stops(time));
        assert_eq!(found.is_ok(), taken, "stop-time {time}: {found:?}");
    }
    let anchored =
        |time: &str| json!({"ietf-yang-push:periodic": {"period": 100, "anchor-time": time}});
    for (time, taken) in [
        ("9999-12-31T23:59:59-14:00", false),
        ("0000-01-01T00:00:00+14:00", false),
        ("0001-01-01T00:00:00Z", true),
    ] {
        let found = scene.establish("alice", anchored(time), json!({}));
        assert_eq!(found.is_ok(), taken, "anchor-time {time}: {found:?}");
    }
    let definition = schema().top("ietf-subscribed-notifications", "subscriptions").expect("there");
    let shown = scene.subscriptions.top(definition, None).expect("some");
    let shown = json::object(&[shown]);
    assert!(shown.contains("0001-01-01T00:00:00Z") && !shown.contains("1970"), "{shown}");
    scene.later(10);
}

/// Fills what waits for a subscription of alice until it is suspended.
fn suspended(scene: &mut Scene, caller: &Caller) -> u32 {
    let id = scene.establish_by(caller, on_change(), json!({})).expect("established");
    for interval in 2..20 {
        scene.publish(vec![Arc::new(row("e1", "q3", interval))]);
    }
    id
}

#[test]
fn who_is_suspended_cannot_make_more_wait_nor_put_off_its_end() {
    let settings = Settings { waiting_octets_max: 3000, ..Settings::default() };
    let mut scene = Scene::new(settings);
    let id = suspended(&mut scene, &of("alice"));
    scene.later(30_000);
    for _ in 0..50 {
        scene.call(&of("alice"), "resync-subscription", &json!({"id": id})).expect("in time");
        let same = json!({
            "id": id, "ietf-yang-push:datastore": "ietf-datastores:operational",
            "ietf-yang-push:on-change": {}
        });
        scene.call(&of("alice"), "modify-subscription", &same).expect("modified");
    }
    scene.later(30_000);
    let all = kinds(&scene.all(id));
    assert_eq!(
        all[all.len() - 3..],
        ["subscription-suspended", "subscription-modified", "subscription-terminated"]
    );
    for kind in ["subscription-suspended", "subscription-modified"] {
        assert_eq!(all.iter().filter(|found| *found == kind).count(), 1, "{kind}");
    }
    assert!(scene.subscriptions.over(id));
}

#[test]
fn what_a_session_has_not_read_goes_with_it() {
    let settings = Settings { waiting_octets_max: 3000, ..Settings::default() };
    let mut scene = Scene::new(settings);
    let caller = Caller { user: "alice".into(), transport: Transport::Netconf(7) };
    let id = suspended(&mut scene, &caller);
    scene.later(60_000);
    assert!(scene.subscriptions.is_empty() && !scene.subscriptions.over(id), "ended, not read");
    scene.subscriptions.closed(Transport::Netconf(7));
    assert!(scene.subscriptions.over(id));
    assert!(scene.with(|subscriptions, world, now| subscriptions.take(id, world, now)).is_none());
}

#[test]
fn one_that_has_ended_counts_until_it_is_read() {
    let settings = Settings {
        waiting_octets_max: 3000,
        subscriptions_max: 2,
        of_user_max: 2,
        ..Settings::default()
    };
    let mut scene = Scene::new(settings);
    let ids = [suspended(&mut scene, &of("alice")), suspended(&mut scene, &of("alice"))];
    scene.later(60_000);
    assert!(scene.subscriptions.is_empty());
    for user in ["alice", "dave"] {
        let refused = scene.establish(user, on_change(), json!({})).expect_err("full");
        assert_eq!(app_tag(refused), "ietf-subscribed-notifications:insufficient-resources");
    }
    scene.all(ids[0]);
    scene.establish("alice", on_change(), json!({})).expect("room for one");
    scene.establish("alice", on_change(), json!({})).expect_err("and no more");
}
